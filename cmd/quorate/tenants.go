package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/gitsource/sources"
)

// tenant is the user to impersonate for all clusters of a source: --source
// LOCATION,allow-namespace=shop,as=quorate:tenant:shop. Clusters that are no longer declared are assigned to tenants by
// namespace. Each source must therefore be restricted to namespaces, and the namespaces of different tenants must not
// overlap.
type tenant struct {
	kube.Impersonation
	flags *pflag.FlagSet
}

// add adds the settings of a single source. The command's flags with the same names belong to kubeFlags.
func (t *tenant) add(f *pflag.FlagSet) {
	f.StringVar(&t.User, "as", "", "")
	f.StringArrayVar(&t.Groups, "as-group", nil, "")
	t.flags = f
}

func (t *tenant) given(setting string) bool { return t.flags != nil && t.flags.Changed(setting) }

// check rejects impersonation without a user or without namespaces.
func (t *tenant) check(s source) error {
	switch {
	case !t.given("as") && !t.given("as-group"):
		return nil
	case strings.TrimSpace(t.User) == "":
		return usageError{fmt.Errorf(
			"%s: as=%q: expected a user name; without a user name, the run would act with its own rights",
			s.specified(), t.User)}
	case slices.ContainsFunc(t.Groups, func(group string) bool { return strings.TrimSpace(group) == "" }):
		return usageError{fmt.Errorf("%s: as-group: expected a group name", s.specified())}
	case len(s.AllowNamespaces) == 0:
		return usageError{fmt.Errorf(
			"%s: as=%s: allow-namespace is required: "+
				"it determines which clusters are processed as this user", s.specified(), t.User)}
	}
	return nil
}

// checkAccounts rejects impersonating a service account in a namespace in which sources may declare clusters, because
// anyone who can create pods there can run them as that account.
func checkAccounts(list []source) (problems []error) {
	bound := sources.Namespaces(plain(list))
	for _, s := range list {
		account, is := strings.CutPrefix(s.as.User, "system:serviceaccount:")
		namespace, _, _ := strings.Cut(account, ":")
		if is && slices.Contains(bound, namespace) {
			problems = append(problems, usageError{fmt.Errorf(
				"%s: as=%s: anyone who can create pods in the namespace %s can run as this account; use "+
					"a user that pods cannot run as, such as quorate:tenant:%s (docs/how-to/tenants.md)",
				s.specified(), s.as.User, namespace, namespace)})
		}
	}
	return problems
}

// checkTenants rejects sources for which it is ambiguous which user to impersonate in a namespace.
func checkTenants(list []source) error {
	if !slices.ContainsFunc(list, func(s source) bool { return s.as.User != "" }) {
		return nil
	}
	problems := checkAccounts(list)
	whose := map[string]source{}
	for _, s := range list {
		if len(s.AllowNamespaces) == 0 {
			problems = append(problems,
				usageError{fmt.Errorf("%s: allow-namespace is required, because another source sets as=; "+
					"otherwise, clusters in the other source's namespaces would not be processed as its "+
					"user", s.specified())})
		}
		for _, namespace := range s.AllowNamespaces {
			other, taken := whose[namespace]
			if taken && !other.as.same(s.as) {
				problems = append(problems, usageError{fmt.Errorf(
					"%s: the source and %s may both declare clusters in the namespace %s, but as different users: "+
						"give each source its own namespaces, or set the same user (as) for both",
					s.specified(), other.specified(), namespace)})
			}
			whose[namespace] = s
		}
	}
	return errors.Join(problems...)
}

func (t *tenant) same(other tenant) bool {
	return t.User == other.User && slices.Equal(t.Groups, other.Groups)
}

// scope is the scope of a run: its namespaces (empty means all) and the users to impersonate in them, if any.
type scope struct {
	namespaces []string
	as         map[string]kube.Impersonation
}

// scope returns the scope of the sources. A run does not read anything in namespaces in which no source may declare
// clusters.
func (f *sourceFlags) scope() (scope, error) {
	s := scope{namespaces: f.namespaces, as: map[string]kube.Impersonation{}}
	if f.live() {
		return s, nil
	}
	list, err := f.parsed()
	if err != nil {
		return scope{}, err
	}
	bound := sources.Namespaces(plain(list))
	switch {
	case len(bound) == 0:
	case len(s.namespaces) == 0:
		s.namespaces = bound
	default:
		s.namespaces = slices.DeleteFunc(slices.Clone(s.namespaces),
			func(n string) bool { return !slices.Contains(bound, n) })
		if len(s.namespaces) == 0 { // an empty list would mean all
			return scope{}, usageError{fmt.Errorf("%s %s: no source may declare clusters there: the sources allow "+
				"only %s", f.named("namespace"), strings.Join(f.namespaces, ";"), strings.Join(bound, ";"))}
		}
	}
	for _, source := range list {
		for _, namespace := range source.AllowNamespaces {
			if source.as.User != "" {
				s.as[namespace] = source.as.Impersonation
			}
		}
	}
	return s, nil
}

// clients returns the clients that impersonate the tenants, by namespace. Each tenant has a single client for all of
// its namespaces.
func (s scope) clients(made func(kube.Impersonation) (*kube.Client, error)) (map[string]*kube.Client, error) {
	all, byTenant := map[string]*kube.Client{}, map[string]*kube.Client{}
	for namespace, as := range s.as {
		id := strings.Join(append([]string{as.User}, as.Groups...), "\n")
		if byTenant[id] == nil {
			client, err := made(as)
			if err != nil {
				return nil, err
			}
			byTenant[id] = client
		}
		all[namespace] = byTenant[id]
	}
	return all, nil
}
