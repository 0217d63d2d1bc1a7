package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/signature"
)

// source is one place that declarations come from, and how to read it. Each setting is a flag of the command, and can be given for one source
// alone: --source LOCATION,path=apps,branch=main.
type source struct {
	location    string
	selector    refs.Selector
	path        string
	credentials string
	// verify is what must be signed, and verifyKeys where the public keys are of those who may sign.
	verify     string
	verifyKeys keysPath
	// namespace is that of declarations without one.
	namespace string
}

// add adds the settings as flags. What is set already stays unless a flag says otherwise.
func (s *source) add(f *pflag.FlagSet) {
	f.StringVar(&s.selector.Branch, "branch", s.selector.Branch, "branch to read (default: the one that HEAD names)")
	f.StringVar(&s.selector.Tag, "tag", s.selector.Tag, "tag to read, instead of a branch")
	f.StringVar(&s.selector.SemVer, "semver", s.selector.SemVer, `range of versions, such as ">=1.2 <2": the highest tag in it is read, instead of a branch`)
	f.StringVar(&s.selector.Name, "ref", s.selector.Name, "reference in full to read, such as refs/pull/420/head, instead of a branch")
	f.StringVar(&s.selector.Commit, "commit", s.selector.Commit, "commit to read, 40 hexadecimal digits, instead of a branch")
	f.StringVar(&s.credentials, "git-credentials", s.credentials, "directory with the files username and password, or bearerToken, and ca.crt: a mounted Secret")
	f.Var(&s.verifyKeys, "verify-keys", "directory, a mounted Secret, or file with the public keys of those who may sign: *.asc (PGP), *.sshpub (SSH) or allowed_signers")
	f.StringVar(&s.verify, "verify", s.verify, "what must be signed with one of --verify-keys: commit, tag or tag-and-commit (default: commit, if there are keys)")
	f.StringVar(&s.path, "path", s.path, "directory in the repository (default: its root)")
}

// selecting are the settings of which a source has one at most; one of its own replaces that of all.
var selecting = []string{"branch", "tag", "semver", "ref", "commit"}

// with returns the source that a value of --source names: a location, and settings of its own after commas.
func (s source) with(value string) (source, error) {
	parts := strings.Split(value, ",")
	s.location = parts[0]
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	own := map[string]string{}
	for _, part := range parts[1:] {
		name, setting, ok := strings.Cut(part, "=")
		if !ok {
			return s, usageError{fmt.Errorf("--source: %q after the location: want SETTING=VALUE, such as path=apps", part)}
		}
		own[name] = setting
	}
	for _, name := range selecting {
		if _, given := own[name]; given {
			s.selector = refs.Selector{}
		}
	}
	s.add(flags)
	for name, setting := range own {
		if flags.Lookup(name) == nil {
			return s, usageError{fmt.Errorf("--source: there is no setting %q", name)}
		}
		if err := flags.Set(name, setting); err != nil {
			return s, usageError{fmt.Errorf("--source: %s: %w", name, err)}
		}
	}
	return s, nil
}

func (s source) options() gitsource.Options {
	return gitsource.Options{
		Location: s.location,
		Selector: s.selector,
		Verify:   gitsource.Verification{Mode: signature.Mode(s.verify)},
		Options:  manifests.Options{Path: s.path, Namespace: s.namespace},
	}
}

func (s source) fetch(ctx context.Context) (gitsource.Desired, error) {
	options := s.options()
	var err error
	if options.Auth, err = readCredentials(s.credentials); err != nil {
		return gitsource.Desired{}, err
	}
	if options.Verify.Keys, err = s.keys(); err != nil {
		return gitsource.Desired{}, err
	}
	return gitsource.Fetch(ctx, options)
}

// readCredentials reads a directory as a mounted Secret makes it. What is not there is empty.
func readCredentials(dir string) (remote.Auth, error) {
	if dir == "" {
		return remote.Auth{}, nil
	}
	contents := map[string]string{}
	for _, name := range []string{"username", "password", "bearerToken", "ca.crt"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return remote.Auth{}, fmt.Errorf("read --git-credentials: %w", err)
		}
		contents[name] = strings.TrimSpace(string(content))
	}
	if contents["password"]+contents["bearerToken"]+contents["ca.crt"] == "" {
		return remote.Auth{}, usageError{fmt.Errorf("--git-credentials %s: want a directory with password, bearerToken or ca.crt in it", dir)}
	}
	auth := remote.Auth{Username: contents["username"], Password: contents["password"], BearerToken: contents["bearerToken"]}
	if contents["ca.crt"] != "" {
		auth.CABundle = []byte(contents["ca.crt"])
	}
	return auth, nil
}
