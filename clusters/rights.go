package clusters

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/reconcile"
)

// rightMissingError is an error caused by a missing right, with advice.
type rightMissingError struct {
	err    error
	advice string
}

func (e *rightMissingError) Error() string {
	if e.advice == "" {
		return e.err.Error()
	}
	return e.err.Error() + "; " + e.advice
}

func (e *rightMissingError) Unwrap() error { return e.err }

// brief removes the advice from an error, because a run prints it once for all clusters of a namespace.
func brief(err error) error {
	var lack *rightMissingError
	if errors.As(err, &lack) {
		return &rightMissingError{err: lack.err}
	}
	return err
}

// advised adds advice to an error caused by a missing right in a namespace, or in all namespaces if namespace is "".
// Other errors are unchanged.
func (l *Live) advised(namespace string, err error) error {
	var already *rightMissingError
	lack := kube.RightMissing(err)
	if lack == kube.NoRightMissing || errors.As(err, &already) {
		return err
	}
	return &rightMissingError{err, l.advice(namespace, lack)}
}

func (l *Live) advice(namespace string, lack kube.Lack) string {
	where := "in all namespaces, or name the namespaces it may read with --allow-namespace or --namespace"
	if namespace != "" {
		where = "in the namespace " + namespace
	}
	switch {
	case lack == kube.RightToImpersonate && l.options.Tenants[namespace] != nil:
		return fmt.Sprintf("the run may not impersonate the user in as=: use as=quorate:tenant:%s, and add this name "+
			"to the ClusterRole quorate-tenants of deploy/tenants (docs/how-to/tenants.md)", namespace)
	case lack == kube.RightToImpersonate:
		return "allow the kubeconfig user to impersonate the user in --as, or omit --as"
	case l.options.Tenants[namespace] != nil:
		return fmt.Sprintf("the user in as= is not allowed to do this: run kubectl create rolebinding quorate-tenant "+
			"--namespace=%s --clusterrole=quorate --user=%s (docs/how-to/tenants.md)", namespace,
			l.options.Tenants[namespace].User())
	case l.options.Reading:
		return "bind the ClusterRole quorate-plan of deploy/plan-rbac.yaml to this user " + where +
			" (docs/how-to/plan-without-secrets.md)"
	}
	return "bind the ClusterRole quorate of deploy/base/rbac.yaml to this user " + where + " (docs/reference/rights.md)"
}

// lookedAt returns err with the namespace that was being observed and the sources for which it was observed.
func lookedAt(namespace string, sources []reconcile.SourceState, err error) error {
	var of []string
	for _, p := range sources {
		if len(p.Namespaces) > 0 && p.Namespaces.Allow(namespace) {
			of = append(of, cmp.Or(p.Label, p.Name))
		}
	}
	if len(of) == 0 {
		return fmt.Errorf("list namespace %s: %w", namespace, err)
	}
	return fmt.Errorf("list namespace %s, for %s: %w", namespace, strings.Join(of, " and "), err)
}
