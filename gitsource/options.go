package gitsource

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

var (
	hasScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	scpForm   = regexp.MustCompile(`^[^/\\]+:`)
	sha1Hex   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

func isURL(location string) bool { return hasScheme.MatchString(location) }

// normalized checks the options as far as they can be checked without the source, and
// spells them in one way.
func (o Options) normalized() (Options, error) {
	if err := o.checkLocation(); err != nil {
		return o, err
	}
	o.Commit = strings.ToLower(o.Commit)
	if err := o.checkRevision(); err != nil {
		return o, err
	}
	if path.IsAbs(o.Path) {
		return o, optionsErrorf("the path %q is absolute; it is relative to the root of the source", o.Path)
	}
	if o.Path = path.Clean(o.Path); !fs.ValidPath(o.Path) {
		return o, optionsErrorf("the path %q leads out of the source", o.Path)
	}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	return o, nil
}

func (o Options) checkRevision() error {
	named := 0
	for _, name := range []string{o.Branch, o.Tag, o.Commit} {
		if name != "" {
			named++
		}
	}
	switch {
	case named > 1:
		return optionsErrorf("a branch, a tag or a commit: only one of them can be read")
	case o.Commit != "" && !sha1Hex.MatchString(o.Commit):
		return optionsErrorf("%q is no commit; write all 40 hexadecimal digits", o.Commit)
	case o.Branch != "" && plumbing.NewBranchReferenceName(o.Branch).Validate() != nil:
		return optionsErrorf("%q is no name of a branch", o.Branch)
	case o.Tag != "" && plumbing.NewTagReferenceName(o.Tag).Validate() != nil:
		return optionsErrorf("%q is no name of a tag", o.Tag)
	}
	return nil
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
	case u.Scheme == "http" && o.Auth.given():
		return optionsErrorf("credentials for %s would cross the network in the clear; use https", u.Host)
	}
	return nil
}
