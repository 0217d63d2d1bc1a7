package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/credentials"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/signature"
	"quorate.dev/quorate/gitsource/sources"
)

// source specifies where declarations are read from, and how. Each setting is a flag of the command, and can also be
// set for a single source: --source LOCATION,path=apps,branch=main.
type source struct {
	location    string
	selector    refs.Selector
	path        string
	credentials string
	// caOnly trusts only the CAs in the credentials.
	caOnly bool
	proxy  string
	// verify specifies what must be signed, and verifyKeys is the path of the public keys of the allowed signers.
	verify     string
	verifyKeys keysPath
	// namespace is the namespace of declarations that do not set a namespace.
	namespace string
	// allowNamespaces limits the namespaces of the source's clusters; empty means all.
	allowNamespaces namespaces
	// policy limits what the source's clusters may request.
	policy           policy.Policy
	ignoreOtherKinds bool
	cacheDir         string
	// as is the user to impersonate for the source's clusters; if empty, the run acts as its own user. See tenants.go.
	as tenant
	// allowNonFastForward accepts a revision that does not descend from the last applied revision.
	allowNonFastForward bool
	timeout             time.Duration
	limits              limits
	// fetchBytes is the memory limit of the process that fetches the source; 0 means unlimited.
	fetchBytes int64
	// slots contains the fetch slots that all sources of the run share.
	slots *sources.Slots
}

func newSource(l limits) source { return source{timeout: gitsource.FetchTimeout, limits: l} }

// add adds the settings as flags, with the current values as defaults.
func (s *source) add(f *pflag.FlagSet) {
	s.addReading(f)
	addPolicy(f, &s.policy)
}

// addReading adds the flags for reading git, and for the namespaces in which the source may declare clusters.
func (s *source) addReading(f *pflag.FlagSet) {
	f.StringVar(&s.selector.Branch, "branch", s.selector.Branch, "branch to read (default: the branch that HEAD names)")
	f.StringVar(&s.selector.Tag, "tag", s.selector.Tag, "tag to read, instead of a branch")
	f.StringVar(&s.selector.SemVer, "semver", s.selector.SemVer,
		`range of versions, such as ">=1.2 <2": the highest tag in it is read, instead of a branch`)
	f.StringVar(&s.selector.Name, "ref", s.selector.Name,
		"full reference to read, such as refs/pull/420/head, instead of a branch")
	f.StringVar(&s.selector.Commit, "commit", s.selector.Commit,
		"commit to read, 40 hexadecimal digits, instead of a branch")
	f.StringVar(&s.credentials, "git-credentials", s.credentials,
		"directory (a mounted Secret) with files such as password, bearerToken, ca.crt, identity and known_hosts")
	f.BoolVar(&s.caOnly, "ca-only", s.caOnly,
		"trust only the CAs in ca.crt of the credentials, not the system's CAs")
	f.StringVar(&s.proxy, "git-proxy", s.proxy,
		"URL of the proxy for the repository (default, for https: "+
			"$HTTPS_PROXY, unless $NO_PROXY names the host)")
	f.StringVar(&s.namespace, "default-namespace", s.namespace,
		"namespace of declarations that do not set one (default: --namespace, or \"default\")")
	f.Var(&s.verifyKeys, "verify-keys",
		"directory (a mounted Secret) or file with the public keys of allowed signers: "+
			"*.asc (PGP), *.sshpub or *.pub (SSH), allowed_signers or *.allowed_signers")
	f.StringVar(&s.verify, "verify", s.verify,
		"what must be signed with one of --verify-keys: commit, tag or tag-and-commit (default: "+
			"commit, if there are keys)")
	f.StringVar(&s.path, "path", s.path, "directory in the repository (default: its root)")
	f.Var(s.allowNamespaces.flag(), "allow-namespace",
		"namespace that clusters may be declared in; repeatable, or several separated by ; (default: all)")
	f.BoolVar(&s.ignoreOtherKinds, "ignore-other-kinds", s.ignoreOtherKinds,
		"ignore objects other than EtcdClusters instead of rejecting them")
	f.StringVar(&s.cacheDir, "cache-dir", s.cacheDir,
		"directory for caching the last read, so that an unchanged repository is not fetched again (default: none)")
	f.BoolVar(&s.allowNonFastForward, "allow-non-fast-forward", s.allowNonFastForward,
		"accept a revision that does not descend from the last applied revision")
	f.DurationVar(&s.timeout, "fetch-timeout", s.timeout, "maximum time for reading the source")
	s.limits.add(f)
}

// String returns the display name of the source.
func (s source) String() string {
	if s.path == "" {
		return s.location
	}
	return s.location + ",path=" + s.path
}

// identity returns the name of the source in the status of its clusters. The name does not depend on the working
// directory.
func (s source) identity() string {
	if !remote.IsAddress(s.location) {
		if path, err := filepath.Abs(s.location); err == nil {
			s.location = path
		}
	}
	if s.path = path.Clean(s.path); s.path == "." {
		s.path = ""
	}
	return s.String()
}

// selected returns the setting that selects the revision, or "" if HEAD is read.
func (s source) selected() string {
	for i, value := range []string{s.selector.Branch, s.selector.Tag, s.selector.SemVer, s.selector.Name,
		s.selector.Commit} {
		if value != "" {
			return "," + selecting[i] + "=" + value
		}
	}
	return ""
}

// selecting lists the mutually exclusive settings that select a revision; a source's own setting replaces the global
// setting.
var selecting = []string{"branch", "tag", "semver", "ref", "commit"}

// with returns the source for a value of --source: a location, followed by its own settings after commas.
func (s source) with(value string) (source, error) {
	parts := strings.Split(value, ",")
	s.location = parts[0]
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.add(flags)
	s.as.add(flags)
	own := map[string][]string{}
	for i, part := range parts[1:] {
		name, setting, ok := strings.Cut(part, "=")
		if !ok {
			return s, usageError{fmt.Errorf("--source %s: %q after the location: "+
				"expected SETTING=VALUE, such as path=apps%s", s.location, part, asOneOfMany(flags, parts[i], part))}
		}
		if flags.Lookup(name) == nil {
			return s, usageError{fmt.Errorf("--source %s: unknown source setting %q; --help lists the settings%s",
				s.location, name, asOneOfMany(flags, parts[i], part))}
		}
		own[name] = append(own[name], setting)
	}
	for _, name := range selecting {
		if _, given := own[name]; given {
			s.selector = refs.Selector{}
		}
	}
	for name, settings := range own {
		for _, setting := range settings {
			if err := flags.Set(name, setting); err != nil {
				var invalid *pflag.InvalidValueError // the error names a flag, but the user wrote a setting
				if errors.As(err, &invalid) {
					err = invalid.Unwrap()
				}
				return s, usageError{fmt.Errorf("--source %s: %s: %w", s.location, name, err)}
			}
		}
	}
	return s, nil
}

// hide replaces an error that would repeat a location, if the location may contain a password.
func (s source) hide(err error) error {
	if err == nil || !remote.IsAddress(s.location) || !strings.Contains(err.Error(), s.location) {
		return err
	}
	if _, wrong := remote.ParseAddress(s.location); wrong != nil {
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

// options returns the options for reading the source. It also reads the credentials. A source without a credentials
// directory uses the credentials in the environment.
func (s source) options() (gitsource.Options, error) {
	o := gitsource.Options{
		Location: s.location,
		Selector: s.selector,
		Auth:     credentials.FromEnvironment(os.Getenv),
		Proxy:    s.proxy,
		Verify:   gitsource.Verification{Mode: signature.Mode(s.verify)},
		Transfer: s.limits.transfer,
		Timeout:  s.timeout,
		CacheDir: s.cacheDir,
		Memory:   s.fetchBytes,
		Options: manifests.Options{
			Path: s.path, Namespace: s.namespace, AllowNamespaces: s.allowNamespaces, Policy: s.policy,
			IgnoreOtherKinds: s.ignoreOtherKinds, Limits: s.limits.files,
		},
	}
	var err error
	if s.credentials != "" {
		o.Auth, err = credentials.Read(s.credentials)
	}
	o.Auth.CAOnly = s.caOnly
	return o, err
}

func (s source) fetch(ctx context.Context, reader *gitsource.Reader) (gitsource.Desired, error) {
	options, err := s.options()
	if err != nil {
		return gitsource.Desired{}, err
	}
	if options.Verify.Keys, err = s.keys(); err != nil {
		return gitsource.Desired{}, err
	}
	var desired gitsource.Desired
	err = s.slots.Read(ctx, s.location, func(ctx context.Context) (err error) {
		desired, err = reader.Fetch(ctx, options)
		return err
	})
	return desired, err
}
