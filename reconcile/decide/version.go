package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// version of etcd; the patch is left out where a minor version is meant.
type version struct{ major, minor, patch int }

// String returns a minor version, such as 3.6.
func (v version) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

func (v version) full() string { return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch) }

func parseVersion(text string) (version, bool) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) != 3 {
		return version{}, false
	}
	var numbers [3]int
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return version{}, false
		}
		numbers[i] = n
	}
	return version{numbers[0], numbers[1], numbers[2]}, true
}

// minorOf is the minor version of a version; a zero one if it cannot be read.
func minorOf(text string) version {
	v, _ := parseVersion(text)
	v.patch = 0
	return v
}

func (v version) compare(o version) int {
	return cmp.Or(cmp.Compare(v.major, o.major), cmp.Compare(v.minor, o.minor), cmp.Compare(v.patch, o.patch))
}

// steps is how many minor versions v is above o; many if the major versions differ.
func (v version) steps(o version) int {
	if v.major != o.major {
		return 100 * cmp.Compare(v.major, o.major)
	}
	return v.minor - o.minor
}

// departures are the oldest patches from which the next minor version may be reached, and what is
// better still. Before them members that were removed may come back to life, or learners may be in
// the way (etcd: Upgrade etcd from v3.5 to v3.6, and from v3.6 to v3.7; hard case H37, H38).
var departures = map[version]struct {
	least  version
	better string
}{
	{3, 5, 0}: {version{3, 5, 26}, ", better 3.5.32 or newer"},
	{3, 6, 0}: {version{3, 6, 11}, ""},
}

// running are the versions that members run, ascending: what members say while any answers, else
// the one in the status, and only where that is lost those that pods were made with. What was
// declared and never ran counts for nothing (hard case H101).
func (s State) running() []version {
	var list []version
	add := func(text string) {
		if v, ok := parseVersion(text); ok {
			list = append(list, v)
		}
	}
	for _, m := range s.Membership.Members {
		if m.Answers {
			add(m.Version)
		}
	}
	if len(list) == 0 {
		add(s.ReportedVersion)
	}
	if len(list) == 0 && s.Formed() {
		for _, r := range s.Replicas {
			add(r.PodVersion)
		}
	}
	slices.SortFunc(list, version.compare)
	return list
}

// judgeVersion says why the declared version cannot be rolled to from what runs, with the step to
// take instead, or else whether etcd's data is prepared for it.
func (s State) judgeVersion() (refusal string, prepared bool) {
	runs := s.running()
	target, ok := parseVersion(s.Declared.Version)
	if !ok {
		return fmt.Sprintf("version %q cannot be read", s.Declared.Version), false
	}
	if len(runs) == 0 {
		return "", true // nothing is known to have run
	}
	oldest, newest := runs[0], runs[len(runs)-1]
	switch {
	case target.steps(oldest) > 1:
		return fmt.Sprintf("etcd %s runs, and a minor version must not be skipped on the way to %s: declare a %s first", oldest.full(), target.full(), oldest.next(1)), false
	case target.steps(newest) < -1:
		return fmt.Sprintf("etcd %s runs, and goes back one minor version at a time: declare a %s first", newest.full(), newest.next(-1)), false
	case target.steps(oldest) == 1:
		return oldest.departure(target), target.clear(s.Record.LogVersion) && s.restored()
	case oldest.steps(target) > 0:
		return "", s.preparedFor(target)
	}
	return "", true
}

// mayRoll reports whether the declared version can be rolled to from what runs.
func (s State) mayRoll() bool {
	refusal, prepared := s.judgeVersion()
	return refusal == "" && prepared
}

// stepBegun reports whether new pods get the declared minor version already: whoever began that has
// judged it.
func (s State) stepBegun() bool {
	return s.hasStatefulSet() && minorOf(s.Objects.RunsVersion) == minorOf(s.Declared.Version)
}

func (v version) next(step int) version { return version{v.major, v.minor + step, 0} }

// departure says why a version is too old to leave for the next minor version; empty if it is not.
func (v version) departure(target version) string {
	from := departures[version{v.major, v.minor, 0}]
	if v.compare(from.least) >= 0 {
		return ""
	}
	return fmt.Sprintf("etcd %s runs, and %s can be reached from %s at least%s: declare that first", v.full(), target.full(), from.least.full(), from.better)
}

// preparedFor reports whether etcd has been told to go back to that minor version and has written
// all its data for it.
func (s State) preparedFor(target version) bool {
	minor := minorOf(target.full()).String()
	for _, m := range s.Membership.Members {
		if m.Answers && m.StorageVersion != minor {
			return false
		}
	}
	return s.Membership.Downgrade == minor
}
