package gitsource

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"

	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

var (
	hasScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	scpForm   = regexp.MustCompile(`^[^/\\]+:`)
)

// Options say what to read and how.
type Options struct {
	// Location is the URL of a smart HTTP(S) server, the path of a local repository,
	// bare or not, or the path of a local directory that is no repository. Of a local
	// repository, what is committed is read, not the worktree.
	Location string
	refs.Selector
	// Auth is for repositories that are not public.
	Auth remote.Auth
	// Verify says what must be signed, and by whom.
	Verify Verification
	manifests.Options
}

// Check returns what is wrong with the options themselves, before anything is read. It matches ErrOptions.
func (o Options) Check() error {
	_, err := o.normalized()
	return err
}

func isURL(location string) bool { return hasScheme.MatchString(location) }

// normalized checks the options as far as they can be checked without the source, and
// spells them in one way.
func (o Options) normalized() (Options, error) {
	if err := o.checkLocation(); err != nil {
		return o, err
	}
	var err error
	if o.Selector, err = o.Selector.Normalized(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Verify, err = o.Verify.normalized(o.Selector); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err := o.Auth.Check(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if path.IsAbs(o.Path) {
		return o, optionsErrorf("the path %q is absolute; it is relative to the root of the source", o.Path)
	}
	if o.Path = path.Clean(o.Path); !fs.ValidPath(o.Path) {
		return o, optionsErrorf("the path %q leads out of the source", o.Path)
	}
	return o, nil
}

// checkLocation never repeats a location that may hold a password.
func (o Options) checkLocation() error {
	if o.Location == "" {
		return optionsErrorf("no source is given: the URL of a repository, or the path of a repository or of a directory")
	}
	if !isURL(o.Location) {
		if _, err := os.Stat(o.Location); err != nil && scpForm.MatchString(o.Location) {
			return optionsErrorf("ssh is not supported yet; use the https URL of the repository")
		}
		return nil
	}
	u, err := url.Parse(o.Location)
	if err != nil || u.Host == "" && u.Scheme != "file" {
		return optionsErrorf("the source is not a valid URL")
	}
	return o.checkURL(u)
}

func (o Options) checkURL(u *url.URL) error {
	switch {
	case u.Scheme == "file":
		return optionsErrorf("file:// is not supported; give the path itself")
	case u.Scheme == "ssh" || u.Scheme == "git+ssh":
		return optionsErrorf("ssh is not supported yet; use the https URL of the repository")
	case u.Scheme != "https" && u.Scheme != "http":
		return optionsErrorf("scheme %s is not supported; https, http and local paths are", u.Scheme)
	case u.User != nil:
		return optionsErrorf("the URL of %s holds credentials; they belong elsewhere, where no log and no process list shows them", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return optionsErrorf("the URL of %s has a query or a fragment; the branch, the tag or the commit is named apart from it", u.Host)
	case u.Scheme == "http" && o.Auth.Given():
		return optionsErrorf("credentials for %s would cross the network in the clear; use https", u.Host)
	}
	return nil
}
