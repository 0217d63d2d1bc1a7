// Package etcdversion parses and compares etcd versions.
package etcdversion

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// Version is an etcd version, such as 3.6.16. The zero value means no version.
type Version struct {
	Major, Minor, Patch int
	// Pre is the pre-release suffix, such as -rc.1.
	Pre string
}

// unreadable is the error for text that is not a version. It formats its message only when needed, because many callers
// parse versions that may be missing and ignore the error.
type unreadable struct{ text, form string }

func (u unreadable) Error() string {
	return fmt.Sprintf("parse version %q: it does not have the form %s", u.text, u.form)
}

// Parse parses MAJOR.MINOR.PATCH, or a pre-release such as 3.6.0-rc.1.
func Parse(text string) (Version, error) {
	full := "v" + text
	if semver.Canonical(full) != full {
		return Version{}, unreadable{text, "MAJOR.MINOR.PATCH"}
	}
	v, known := numbers(text)
	if !known {
		return Version{}, unreadable{text, "MAJOR.MINOR.PATCH"}
	}
	return v, nil
}

// preReleases are etcd's own pre-release suffixes.
var preReleases = []string{"-alpha", "-beta", "-rc", "-pre"}

// ParseRunning parses the version that a program reports. It drops a vendor suffix, as in 3.6.16+acme.1 or 3.6.16-k3s1,
// and returns the release on which the vendor's build is based.
func ParseRunning(text string) (Version, error) {
	full := "v" + text
	build := semver.Build(full)
	v, err := Parse(strings.TrimSuffix(text, build))
	if err != nil {
		return Version{}, unreadable{text, "MAJOR.MINOR.PATCH"}
	}
	kind, _, _ := strings.Cut(v.Pre, ".")
	if !slices.Contains(preReleases, kind) {
		v.Pre = ""
	}
	return v, nil
}

// numbers splits a well-formed version, which may lack the patch number. It returns false if a number is too large.
func numbers(text string) (v Version, ok bool) {
	v.Pre = semver.Prerelease("v" + text)
	rest, number := strings.TrimSuffix(text, v.Pre), ""
	for _, to := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if number, rest, _ = strings.Cut(rest, "."); number == "" {
			break
		}
		n, err := strconv.Atoi(number)
		if err != nil {
			return Version{}, false
		}
		*to = n
	}
	return v, true
}

// Must parses text that is known to be a version. It panics if text is not a version.
func Must(text string) Version {
	v, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return v
}

// String returns the version in the form that Parse accepts.
func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d%s", v.Major, v.Minor, v.Patch, v.Pre)
}

// Compare returns a negative number if v is older than o, a positive number if it is newer, and otherwise zero. A
// pre-release is older than its release.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor), cmp.Compare(v.Patch, o.Patch),
		semver.Compare("v0.0.0"+v.Pre, "v0.0.0"+o.Pre))
}

// AtLeast reports whether v is equal to or newer than o.
func (v Version) AtLeast(o Version) bool { return v.Compare(o) >= 0 }

// MajorMinor returns the minor version of v.
func (v Version) MajorMinor() MajorMinor { return MajorMinor{v.Major, v.Minor} }

// MajorMinor is a minor version, such as 3.6. The zero value means no version.
type MajorMinor struct{ Major, Minor int }

// ParseMajorMinor parses a minor version, such as 3.6, or the minor version of a full version, such as 3.6.16.
func ParseMajorMinor(text string) (MajorMinor, error) {
	full := "v" + text
	if short := semver.MajorMinor(full); short == "" || short != full && semver.Canonical(full) != full {
		return MajorMinor{}, unreadable{text, "MAJOR.MINOR"}
	}
	v, known := numbers(text)
	if !known {
		return MajorMinor{}, unreadable{text, "MAJOR.MINOR"}
	}
	return v.MajorMinor(), nil
}

// String returns the minor version in the form that ParseMajorMinor accepts.
func (m MajorMinor) String() string { return fmt.Sprintf("%d.%d", m.Major, m.Minor) }

// Compare returns a negative number if m is older than o, a positive number if it is newer, and otherwise zero.
func (m MajorMinor) Compare(o MajorMinor) int {
	return cmp.Or(cmp.Compare(m.Major, o.Major), cmp.Compare(m.Minor, o.Minor))
}

// Next returns the minor version that is the given number of releases newer than m.
func (m MajorMinor) Next(steps int) MajorMinor { return MajorMinor{m.Major, m.Minor + steps} }

// Steps returns the number of minor versions by which m is newer than o. It is negative if m is older, and 100 or -100
// if the major versions differ.
func (m MajorMinor) Steps(o MajorMinor) int {
	if m.Major != o.Major {
		return 100 * cmp.Compare(m.Major, o.Major)
	}
	return m.Minor - o.Minor
}
