package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/sources"
)

// source is a source with its settings. Each setting is a flag of the command, and can also be set for a single source:
// --source LOCATION,path=apps,branch=main.
type source struct {
	sources.Source
	// limits are the settings for Limits.
	limits sources.LimitSettings
	// as is the user to impersonate for the source's clusters; if empty, the run acts as its own user. See tenants.go.
	as tenant
}

func newSource(l sources.Limits) source {
	return source{Source: sources.Source{Timeout: gitsource.FetchTimeout, Limits: l}}
}

// plain returns the sources without the settings that concern only the command.
func plain(list []source) []sources.Source {
	var all []sources.Source
	for _, s := range list {
		all = append(all, s.Source)
	}
	return all
}

// add adds the settings as flags, with the current values as defaults.
func (s *source) add(f *pflag.FlagSet) {
	s.addReading(f)
	addPolicy(f, &s.Policy)
}

// addReading adds the flags for reading git, and for the namespaces in which the source may declare clusters.
func (s *source) addReading(f *pflag.FlagSet) {
	f.StringVar(&s.Selector.Branch, "branch", s.Selector.Branch, "branch to read (default: the branch that HEAD "+
		"points to)")
	f.StringVar(&s.Selector.Tag, "tag", s.Selector.Tag, "tag to read, instead of a branch")
	f.StringVar(&s.Selector.SemVer, "semver", s.Selector.SemVer,
		`range of versions, such as ">=1.2 <2": read the highest tag in this range, instead of a branch`)
	f.StringVar(&s.Selector.Name, "ref", s.Selector.Name,
		"full reference to read, such as refs/pull/420/head, instead of a branch")
	f.StringVar(&s.Selector.Commit, "commit", s.Selector.Commit,
		"commit to read, 40 hexadecimal digits, instead of a branch")
	f.StringVar(&s.Credentials, "git-credentials", s.Credentials,
		"directory (a mounted Secret) with files such as password, bearerToken, ca.crt, identity and known_hosts")
	f.BoolVar(&s.CAOnly, "ca-only", s.CAOnly,
		"trust only the CAs in ca.crt of the credentials, not the system's CAs")
	f.StringVar(&s.Proxy, "git-proxy", s.Proxy,
		"URL of the proxy for the repository (default, for https: "+
			"$HTTPS_PROXY, unless $NO_PROXY names the host)")
	f.StringVar(&s.Namespace, "default-namespace", s.Namespace,
		"namespace of declarations that do not set one (default: --namespace, or \"default\")")
	f.Var((*keysPath)(&s.VerifyKeys), "verify-keys",
		"directory (a mounted Secret) or file with the public keys of allowed signers: "+
			"*.asc (PGP), *.sshpub or *.pub (SSH), allowed_signers or *.allowed_signers")
	f.StringVar(&s.Verify, "verify", s.Verify,
		"what must be signed with one of --verify-keys: commit, tag or tag-and-commit (default: "+
			"commit, if --verify-keys is set)")
	f.StringVar(&s.Path, "path", s.Path, "directory in the repository (default: its root)")
	f.Var(&namespacesFlag{list: &s.AllowNamespaces}, "allow-namespace",
		"namespace in which clusters may be declared; repeatable, or a list separated by semicolons (default: all)")
	f.BoolVar(&s.IgnoreOtherKinds, "ignore-other-kinds", s.IgnoreOtherKinds,
		"ignore objects other than EtcdClusters instead of rejecting them")
	f.StringVar(&s.CacheDir, "cache-dir", s.CacheDir,
		"directory in which to cache the last read; an unchanged repository is then not fetched again (default: none)")
	f.BoolVar(&s.AllowNonFastForward, "allow-non-fast-forward", s.AllowNonFastForward,
		"accept a revision that does not descend from the last applied revision")
	f.DurationVar(&s.Timeout, "fetch-timeout", s.Timeout, "maximum time for reading the source; parsing its "+
		"files may use up to half of it as CPU time")
	addLimits(f, &s.limits)
}

// setting is a setting of a single source, by the name of its flag.
type setting struct{ flag, value string }

// flags returns flags that set the source's own settings.
func (s *source) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.add(flags)
	s.as.add(flags)
	return flags
}

// with returns the source for a value of --source: a location, followed by its own settings after commas.
func (s source) with(value string) (source, error) {
	location, own, err := splitSource(value)
	if s.Location = location; err != nil {
		return s, err
	}
	return s.at(location, own)
}

// splitSource splits a value of --source into the location and the settings after it.
func splitSource(value string) (location string, own []setting, err error) {
	parts := strings.Split(value, ",")
	location = parts[0]
	if address, err := url.Parse(value); err == nil && address.User != nil && !strings.Contains(location, "@") {
		return "", nil, usageError{errors.New("--source: the URL contains credentials that include a comma; remove " +
			"them from the URL, and store them in files (--git-credentials)")}
	}
	flags := new(source).flags()
	for i, part := range parts[1:] {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return location, nil, usageError{fmt.Errorf("--source %s: %q after the location: "+
				"expected SETTING=VALUE, such as path=apps%s", location, part, asOneOfMany(flags, parts[i], part))}
		}
		if flags.Lookup(name) == nil {
			return location, nil, usageError{fmt.Errorf("--source %s: unknown source setting %q; expected one of %s%s",
				location, name, strings.Join(namesOf(flags), ", "), asOneOfMany(flags, parts[i], part))}
		}
		own = append(own, setting{name, value})
	}
	return location, own, nil
}

// namesOf lists the names of flags.
func namesOf(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// at returns the source at a location, with its own settings.
func (s source) at(location string, own []setting) (source, error) {
	s.Location = location
	if slices.ContainsFunc(own, func(o setting) bool { return slices.Contains(sources.Selecting, o.flag) }) {
		s.Selector = refs.Selector{}
	}
	flags := s.flags()
	for _, o := range own {
		if err := flags.Set(o.flag, o.value); err != nil {
			var invalid *pflag.InvalidValueError // the error names a flag, but the user wrote a setting
			if errors.As(err, &invalid) {
				err = invalid.Unwrap()
			}
			return s, usageError{fmt.Errorf("%s: %s: %w", s.specified(), o.flag, err)}
		}
	}
	s.Limits = s.limits.With(s.Limits, s.Timeout)
	return s, nil
}

// hide replaces an error that would repeat a location, if the location may contain a password.
func (s source) hide(err error) error {
	if err == nil || !remote.IsAddress(s.Location) || !strings.Contains(err.Error(), s.Location) {
		return err
	}
	if _, wrong := remote.ParseAddress(s.Location); wrong != nil {
		return usageError{fmt.Errorf("--source: %w", wrong)}
	}
	return err
}

// asOneOfMany returns a hint if a part of a --source value is not a setting but the previous setting accepts several
// values, and "" otherwise.
func asOneOfMany(flags *pflag.FlagSet, before, part string) string {
	name, _, _ := strings.Cut(before, "=")
	if flag := flags.Lookup(name); flag == nil || flag.Value.Type() != "strings" {
		return ""
	}
	return fmt.Sprintf("; separate several values of %s with ;: %q", name, before+";"+part)
}
