package refs

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// list returns a List in which the hash of each reference is based on its position in names.
func list(names ...string) List {
	l := List{ByName: map[string]plumbing.Hash{}}
	for i, name := range names {
		l.ByName[name] = hash(byte(i + 1))
	}
	return l
}

func hash(b byte) plumbing.Hash { return plumbing.Hash{b} }

func TestFind(t *testing.T) {
	names := []string{
		"refs/heads/main", "refs/heads/feature/x", "refs/heads/v1.2.3", "refs/pull/420/head", "refs/tags/light", "refs/tags/main",
		"refs/tags/1.2.0", "refs/tags/v1.2.0", "refs/tags/v1.2.3", "refs/tags/v1.3.0-rc.1", "refs/tags/v1.10.0", "refs/tags/v2.0.0",
		"refs/remotes/origin/main", "refs/tags/v2.0.0+build.7", "refs/tags/release-9", "refs/tags/v1.2.3.4", "refs/tags/v3.0.0-alpha",
	}
	l := list(names...)
	l.Head, l.HeadName = hash(1), "refs/heads/main"
	for _, c := range []struct {
		selector  Selector
		name, ref string
	}{
		{Selector{}, "main", "refs/heads/main"},
		{Selector{Branch: "main"}, "main", "refs/heads/main"},
		{Selector{Branch: "feature/x"}, "feature/x", "refs/heads/feature/x"},
		{Selector{Branch: "v1.2.3"}, "v1.2.3", "refs/heads/v1.2.3"},
		{Selector{Tag: "main"}, "main", "refs/tags/main"},
		{Selector{Tag: "light"}, "light", "refs/tags/light"},
		{Selector{Short: "feature/x"}, "feature/x", "refs/heads/feature/x"},
		{Selector{Short: "light"}, "light", "refs/tags/light"},
		{Selector{Short: "origin/main"}, "refs/remotes/origin/main", "refs/remotes/origin/main"},
		{Selector{Name: "refs/pull/420/head"}, "refs/pull/420/head", "refs/pull/420/head"},
		{Selector{Name: "refs/heads/main"}, "main", "refs/heads/main"},
		{Selector{Name: "refs/tags/light"}, "light", "refs/tags/light"},
		{Selector{SemVer: "1.2.3"}, "v1.2.3", "refs/tags/v1.2.3"},
		{Selector{SemVer: "v1.2.3"}, "v1.2.3", "refs/tags/v1.2.3"},
		{Selector{SemVer: "~1.2"}, "v1.2.3", "refs/tags/v1.2.3"},
		{Selector{SemVer: "1.x"}, "v1.10.0", "refs/tags/v1.10.0"},
		{Selector{SemVer: ">=1.2 <2"}, "v1.10.0", "refs/tags/v1.10.0"},
		{Selector{SemVer: ">=1.2, <1.3 || >=1.5, <2"}, "v1.10.0", "refs/tags/v1.10.0"},
		{Selector{SemVer: "<=1.2.0"}, "1.2.0", "refs/tags/1.2.0"}, // the first by name of two tags with this version
		{Selector{SemVer: "1.2.0"}, "1.2.0", "refs/tags/1.2.0"},
		{Selector{SemVer: "*"}, "v2.0.0", "refs/tags/v2.0.0"}, // build metadata does not affect the order
		{Selector{SemVer: ">=1.3.0-rc.0 <1.4.0-0"}, "v1.3.0-rc.1", "refs/tags/v1.3.0-rc.1"},
		{Selector{SemVer: ">=2-0"}, "v3.0.0-alpha", "refs/tags/v3.0.0-alpha"},
	} {
		t.Run(c.selector.String(), func(t *testing.T) {
			normalized, err := c.selector.Normalized()
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.Find(normalized)
			if want := (Revision{Name: c.name, Commit: l.ByName[c.ref].String()}); err != nil || got != want {
				t.Errorf("%v, %v; want %v", got, err, want)
			}
		})
	}
}

func TestFindReportsMissingReference(t *testing.T) {
	l := list("refs/heads/main", "refs/tags/v1.0.0-rc.1", "refs/tags/latest", "refs/heads/2.0.0")
	for want, s := range map[string]Selector{
		"no commit at HEAD: create a commit, or name a branch": {},
		`branch "v1.0.0-rc.1" not found`:                       {Branch: "v1.0.0-rc.1"},
		`tag "main" not found`:                                 {Tag: "main"},
		`reference "refs/pull/1/head" not found`:               {Name: "refs/pull/1/head"},
		`branch or tag "x/main" not found`:                     {Short: "x/main"},
		`tag in the range ">=1" not found`:                     {SemVer: ">=1"},
		`tag in the range "2.x" not found`:                     {SemVer: "2.x"},
	} {
		_, err := l.Find(s)
		if missing, ok := errors.AsType[MissingError](err); !ok || missing.Selector != s || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if got, err := l.Find(Selector{Commit: strings.Repeat("a", 40)}); err != nil || got.String() != "sha1:"+strings.Repeat("a", 40) {
		t.Errorf("%v, %v: a commit need not be in the list", got, err)
	}
}

// TestAmbiguousShortNameIsRejected checks that a short name that matches several commits is rejected, and that Admits
// accepts only revisions that the short name can select.
func TestAmbiguousShortNameIsRejected(t *testing.T) {
	l := list("refs/heads/a", "refs/tags/a", "refs/remotes/o/b", "refs/heads/o/b")
	for short, want := range map[string]string{
		"a":   `"a" is ambiguous: it may be refs/tags/a or refs/heads/a; write the full name`,
		"o/b": `"o/b" is ambiguous: it may be refs/heads/o/b or refs/remotes/o/b; write the full name`,
	} {
		if _, err := l.Find(Selector{Short: short}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", short, err)
		}
	}
	l.ByName["refs/tags/a"] = l.ByName["refs/heads/a"]
	found, err := l.Find(Selector{Short: "a"})
	if err != nil || !(Selector{Short: "a"}).Admits(found) {
		t.Errorf("two names of one commit: %v, %v", found, err)
	}
	if s := (Selector{Short: "o/b"}); !s.Admits(Revision{Name: "refs/remotes/o/b", Commit: hash(1).String()}) || s.Admits(found) {
		t.Error("a different name is accepted, or the name of a remote's branch is not")
	}
}

func TestRevisionString(t *testing.T) {
	commit := strings.Repeat("0123", 10)
	for name, want := range map[plumbing.ReferenceName]string{
		"refs/heads/main":      "main@sha1:" + commit,
		"refs/heads/feature/x": "feature/x@sha1:" + commit,
		"refs/tags/v1.2.3":     "v1.2.3@sha1:" + commit,
		"refs/pull/420/head":   "refs/pull/420/head@sha1:" + commit,
		"HEAD":                 "sha1:" + commit,
	} {
		if got := revisionOf(name, plumbing.NewHash(commit)).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := (Revision{}).String(); got != "directory" {
		t.Errorf("%s, want directory", got)
	}
}

func TestNormalized(t *testing.T) {
	got, err := Selector{Commit: strings.Repeat("ABCD", 10)}.Normalized()
	if want := (Selector{Commit: strings.Repeat("abcd", 10)}); err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	const onlyOne = "branch, tag, version range, reference and commit are mutually exclusive: specify only one"
	for _, c := range []struct {
		selector Selector
		want     string
	}{
		{Selector{Branch: "a", Tag: "b"}, onlyOne},
		{Selector{SemVer: "1", Name: "refs/heads/a"}, onlyOne},
		{Selector{Branch: "a", Commit: "b"}, onlyOne},
		{Selector{Commit: "abc"}, `"abc" is not a commit; write all 40 hexadecimal digits`},
		{Selector{Commit: strings.Repeat("g", 40)}, `"gggggggggggggggggggggggggggggggggggggggg" is not a commit; write all 40 hexadecimal digits`},
		{Selector{Branch: "a..b"}, `"a..b" is not a branch name`},
		{Selector{Branch: "a\nb"}, `"a\nb" is not a branch name`},
		{Selector{Branch: "../../x"}, `"../../x" is not a branch name`},
		{Selector{Short: "a", Tag: "b"}, onlyOne},
		{Selector{Short: "HEAD~1"}, `"HEAD~1" is not the name of a branch or tag; use a name such as origin/main, or all 40 hexadecimal digits of a commit`},
		{Selector{Tag: "a b"}, `"a b" is not a tag name`},
		{Selector{Tag: "x.lock"}, `"x.lock" is not a tag name`},
		{Selector{SemVer: "latest"}, `"latest" is not a version range; write a range such as ">=1.2.0 <2"`},
		{Selector{SemVer: ">=1.2.0 <"}, `">=1.2.0 <" is not a version range; write a range such as ">=1.2.0 <2"`},
		{Selector{Name: "main"}, `"main" is not a full reference name; write a name such as refs/heads/main`},
		{Selector{Name: "refs/heads/../../x"}, `"refs/heads/../../x" is not a full reference name; write a name such as refs/heads/main`},
		{Selector{Name: "refs/heads/\x1b[31m"}, `"refs/heads/\x1b[31m" is not a full reference name; write a name such as refs/heads/main`},
	} {
		if _, err := c.selector.Normalized(); err == nil || err.Error() != c.want {
			t.Errorf("%+v: error %v, want %s", c.selector, err, c.want)
		}
	}
}
