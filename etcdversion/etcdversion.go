// Package etcdversion reads and compares versions of etcd.
package etcdversion

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// Version of etcd, such as 3.6.16. The zero value stands for none.
type Version struct {
	Major, Minor, Patch int
	// Pre is what follows the patch where it is not a release: -rc.1.
	Pre string
}

// unreadable is a text that is no version. What it says is put together only where it is told: many
// read versions that may be missing, and go on without.
type unreadable struct{ text, form string }

func (u unreadable) Error() string {
	return fmt.Sprintf("read version %q: it is not of the form %s", u.text, u.form)
}

// Parse reads MAJOR.MINOR.PATCH, or a version before it, such as 3.6.0-rc.1.
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

// preReleases are what etcd calls its own versions that come before a release.
var preReleases = []string{"-alpha", "-beta", "-rc", "-pre"}

// ParseRunning reads what a program says that it is: a version, or one with what somebody adds who has
// built it, such as 3.6.16+acme.1 or 3.6.16-k3s1, which stands for the release that it was built from.
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

// numbers takes apart what is known to be well formed; the patch may be missing. It is false for
// numbers that are too large.
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

// Must is the version in a text that is known to hold one.
func Must(text string) Version {
	v, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return v
}

// String is what Parse reads.
func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d%s", v.Major, v.Minor, v.Patch, v.Pre)
}

// Compare is negative where v is older than o, and positive where it is newer. What is before a
// release is older than it.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor), cmp.Compare(v.Patch, o.Patch),
		semver.Compare("v0.0.0"+v.Pre, "v0.0.0"+o.Pre))
}

// AtLeast reports whether v is o or newer.
func (v Version) AtLeast(o Version) bool { return v.Compare(o) >= 0 }

// MajorMinor is the minor version that v is of.
func (v Version) MajorMinor() MajorMinor { return MajorMinor{v.Major, v.Minor} }

// MajorMinor is a minor version, such as 3.6. The zero value stands for none.
type MajorMinor struct{ Major, Minor int }

// ParseMajorMinor reads a minor version, or that of a version.
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

// String is what ParseMajorMinor reads.
func (m MajorMinor) String() string { return fmt.Sprintf("%d.%d", m.Major, m.Minor) }

// Compare is negative where m is older than o, and positive where it is newer.
func (m MajorMinor) Compare(o MajorMinor) int {
	return cmp.Or(cmp.Compare(m.Major, o.Major), cmp.Compare(m.Minor, o.Minor))
}

// Next is the minor version that is so many steps newer.
func (m MajorMinor) Next(steps int) MajorMinor { return MajorMinor{m.Major, m.Minor + steps} }

// Steps is how many minor versions m is newer than o; many if the major versions differ.
func (m MajorMinor) Steps(o MajorMinor) int {
	if m.Major != o.Major {
		return 100 * cmp.Compare(m.Major, o.Major)
	}
	return m.Minor - o.Minor
}
