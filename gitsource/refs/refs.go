// Package refs finds the commit of a repository that is selected by a branch, a tag, a range of versions among the
// tags, a full reference name, a commit hash, or HEAD.
package refs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"quorate.dev/quorate/internal/revision"
)

// Selector selects a revision. At most one field may be set. If none is set, it selects HEAD.
type Selector struct {
	Branch string
	Tag    string
	// SemVer is a range of versions, such as ">=1.2.0 <2". It selects the highest tag in the range. Tags that are not
	// versions are ignored, and a leading v is not part of the version. Pre-releases, such as 1.3.0-rc.1, match only if
	// the range names a pre-release.
	SemVer string
	// Name is a full reference name, such as refs/pull/420/head.
	Name string
	// Commit is a full commit hash of 40 hexadecimal digits.
	Commit string
	// Short is the name of a tag, a branch, or a remote branch such as origin/main. A name that matches several commits
	// is rejected.
	Short string
}

// Normalized returns the selector in canonical form, or an error if it cannot select a revision.
func (s Selector) Normalized() (Selector, error) {
	s.Commit = strings.ToLower(s.Commit)
	named := 0
	for _, name := range []string{s.Branch, s.Tag, s.SemVer, s.Name, s.Commit, s.Short} {
		if name != "" {
			named++
		}
	}
	_, rangeError := semver.NewConstraint(s.SemVer)
	switch {
	case named > 1:
		return s, errors.New("branch, tag, version range, reference and commit are mutually exclusive: " +
			"specify only one")
	case s.Commit != "" && !revision.IsHash(s.Commit):
		return s, fmt.Errorf("%q is not a commit; write all 40 hexadecimal digits", s.Commit)
	case s.Branch != "" && plumbing.NewBranchReferenceName(s.Branch).Validate() != nil:
		return s, fmt.Errorf("%q is not a branch name", s.Branch)
	case s.Tag != "" && plumbing.NewTagReferenceName(s.Tag).Validate() != nil:
		return s, fmt.Errorf("%q is not a tag name", s.Tag)
	case s.SemVer != "" && rangeError != nil:
		return s, fmt.Errorf("%q is not a version range; write a range such as \">=1.2.0 <2\"", s.SemVer)
	case s.Name != "" && (!strings.HasPrefix(s.Name, "refs/") || plumbing.ReferenceName(s.Name).Validate() != nil):
		return s, fmt.Errorf("%q is not a full reference name; write a name such as refs/heads/main", s.Name)
	case s.Short != "" && plumbing.NewBranchReferenceName(s.Short).Validate() != nil:
		return s, fmt.Errorf("%q is not the name of a branch or tag; use a name such as origin/main, or all 40 "+
			"hexadecimal digits of a commit", s.Short)
	}
	return s, nil
}

// String describes the selection.
func (s Selector) String() string {
	switch {
	case s.Branch != "":
		return fmt.Sprintf("branch %q", s.Branch)
	case s.Tag != "":
		return fmt.Sprintf("tag %q", s.Tag)
	case s.SemVer != "":
		return fmt.Sprintf("tag in the range %q", s.SemVer)
	case s.Name != "":
		return fmt.Sprintf("reference %q", s.Name)
	case s.Commit != "":
		return "commit " + s.Commit
	case s.Short != "":
		return fmt.Sprintf("branch or tag %q", s.Short)
	}
	return "commit at HEAD"
}

// List is the list of references of a repository: hashes of commits or of tag objects.
type List struct {
	ByName map[string]plumbing.Hash
	// Head is the commit at HEAD, and HeadName is its branch. HeadName is empty if HEAD is detached or the branch is
	// unknown. Head is zero if HEAD does not name a commit.
	Head     plumbing.Hash
	HeadName plumbing.ReferenceName
}

// MissingError reports that a repository does not have the selected revision.
type MissingError struct{ Selector }

func (e MissingError) Error() string {
	if e.Selector == (Selector{}) {
		return "no commit at HEAD: create a commit, or name a branch"
	}
	return fmt.Sprintf("%s not found", e.Selector)
}

// Find returns the selected revision. Its Commit may be the hash of a tag object. Find does not check whether a
// selected commit exists, because a list does not contain all commits. The error for a missing revision is a
// MissingError.
func (l List) Find(s Selector) (Revision, error) {
	switch {
	case s.Commit != "":
		return Revision{Commit: s.Commit}, nil
	case s.Branch != "":
		return l.named(plumbing.NewBranchReferenceName(s.Branch), s)
	case s.Tag != "":
		return l.named(plumbing.NewTagReferenceName(s.Tag), s)
	case s.SemVer != "":
		return l.highest(s)
	case s.Name != "":
		return l.named(plumbing.ReferenceName(s.Name), s)
	case s.Short != "":
		return l.short(s)
	case l.Head.IsZero():
		return Revision{}, MissingError{s}
	}
	return revisionOf(l.HeadName, l.Head), nil
}

// Admits reports whether the selector could match a revision with r's name in any repository, regardless of its hash.
func (s Selector) Admits(r Revision) bool {
	if s.Commit != "" {
		return r.Name == ""
	}
	if r.Name == "" {
		return s == (Selector{})
	}
	for _, name := range []plumbing.ReferenceName{plumbing.NewBranchReferenceName(r.Name),
		plumbing.NewTagReferenceName(r.Name), plumbing.ReferenceName(r.Name)} {
		only := plumbing.NewHash(r.Commit)
		l := List{ByName: map[string]plumbing.Hash{name.String(): only}, Head: only, HeadName: name}
		if found, err := l.Find(s); err == nil && found.Name == r.Name && name.Validate() == nil {
			return true
		}
	}
	return false
}

func (l List) named(name plumbing.ReferenceName, s Selector) (Revision, error) {
	hash, ok := l.ByName[name.String()]
	if !ok {
		return Revision{}, MissingError{s}
	}
	return revisionOf(name, hash), nil
}

// short returns the reference that a short name matches, or an error if the name is ambiguous.
func (l List) short(s Selector) (Revision, error) {
	var found []plumbing.ReferenceName
	for _, kind := range []string{"refs/tags/", "refs/heads/", "refs/remotes/"} {
		name := plumbing.ReferenceName(kind + s.Short)
		hash, there := l.ByName[name.String()]
		if there && (len(found) == 0 || l.ByName[found[0].String()] != hash) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return Revision{}, MissingError{s}
	case 1:
		return l.named(found[0], s)
	}
	return Revision{}, fmt.Errorf("%q is ambiguous: it may be %s or %s; write the full name", s.Short, found[0],
		found[1])
}

// highest finds the tag with the highest version in the range. If several tags have the same version, such as 1.2.0 and
// v1.2.0, the first by name is used.
func (l List) highest(s Selector) (Revision, error) {
	within, err := semver.NewConstraint(s.SemVer)
	if err != nil {
		return Revision{}, err
	}
	var best *semver.Version
	var name plumbing.ReferenceName
	for text := range l.ByName {
		candidate := plumbing.ReferenceName(text)
		if !candidate.IsTag() {
			continue
		}
		version, err := semver.NewVersion(candidate.Short())
		if err != nil || !within.Check(version) {
			continue
		}
		if best == nil || version.GreaterThan(best) || version.Equal(best) && candidate < name {
			best, name = version, candidate
		}
	}
	if best == nil {
		return Revision{}, MissingError{s}
	}
	return revisionOf(name, l.ByName[name.String()]), nil
}

func revisionOf(name plumbing.ReferenceName, hash plumbing.Hash) Revision {
	r := Revision{Commit: hash.String()}
	switch {
	case name.IsBranch(), name.IsTag():
		r.Name = name.Short()
	case name != plumbing.HEAD:
		r.Name = name.String()
	}
	return r
}
