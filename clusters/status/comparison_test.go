package status

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestComparisonIsReported checks what the status records about a comparison, and that the next pass reads back the
// same values.
func TestComparisonIsReported(t *testing.T) {
	now := time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)
	before := decide.Comparison{At: now.Add(-25 * time.Hour), Revision: 90}
	differed := decide.Comparison{At: now.Add(-time.Minute), Revision: 90, DiffersSince: now.Add(-time.Minute)}
	same, other := decide.Hash{Revision: 100, Sum: 1}, decide.Hash{Revision: 100, Sum: 2}
	member := func(hash decide.Hash, why string) decide.Member {
		return decide.Member{Name: "a-0", Answers: true, Hash: hash, HashWhy: why}
	}
	for what, c := range map[string]struct {
		before  decide.Comparison
		members []decide.Member
		want    decide.Comparison
	}{
		"never compared":                    {decide.Comparison{}, []decide.Member{member(decide.Hash{}, "")}, decide.Comparison{}},
		"equal":                             {before, []decide.Member{member(same, ""), member(same, "")}, decide.Comparison{At: now, Revision: 100}},
		"different":                         {before, []decide.Member{member(same, ""), member(other, "")}, decide.Comparison{At: now, Revision: 100, DiffersSince: now}},
		"still different, but not due":      {differed, []decide.Member{member(same, ""), member(other, "")}, differed},
		"equal again":                       {differed, []decide.Member{member(same, ""), member(same, "")}, decide.Comparison{At: differed.At, Revision: 90}},
		"different, and now partly unknown": {differed, []decide.Member{member(same, ""), member(decide.Hash{}, "slow")}, differed},
		"a hash is unknown":                 {before, []decide.Member{member(same, ""), member(decide.Hash{}, "no\x1b[2J\nspace")}, decide.Comparison{At: now, Failure: `at revision 100, compacted at 0: hash 00000001 on a-0; hash unknown for a-0 (no\x1b[2J space)`}},
		"members did not respond":           {before, []decide.Member{member(decide.Hash{}, ""), member(decide.Hash{}, "")}, before},
		"a difference dated in the future":  {decide.Comparison{At: before.At, DiffersSince: now.Add(time.Hour)}, nil, decide.Comparison{At: before.At, DiffersSince: now}},
	} {
		custom := &v1alpha1.EtcdCluster{}
		custom.Status.CorruptionCheck = corruptionCheck(decide.State{Comparison: c.before})
		s := decide.State{Name: "a", Now: now, Declared: decide.Declared{Lifecycle: decide.Running, CorruptionCheck: 24 * time.Hour},
			Comparison: Comparison(custom, now), Membership: decide.Membership{Known: true, Members: c.members}}
		custom.Status.CorruptionCheck = corruptionCheck(s)
		if got := Comparison(custom, now); got != c.want {
			t.Errorf("%s: read back %+v, want %+v", what, got, c.want)
		}
	}
	for _, year := range []string{"9999-12-31T23:59:59-10:00", "0000-01-01T00:00:00+10:00"} {
		at, err := time.Parse(time.RFC3339, year)
		custom := &v1alpha1.EtcdCluster{}
		custom.Status.CorruptionCheck = &v1alpha1.CorruptionCheckStatus{At: &metav1.Time{Time: at}, DiffersSince: &metav1.Time{Time: at}}
		if got := Comparison(custom, now); err != nil || got != (decide.Comparison{}) {
			t.Errorf("%s: read back %+v, %v", year, got, err)
		}
	}
	custom := &v1alpha1.EtcdCluster{}
	custom.Status.CorruptionCheck = &v1alpha1.CorruptionCheckStatus{At: &metav1.Time{}, Failure: "\x1b[2J" + strings.Repeat("A", 1<<20)}
	if got := Comparison(custom, now); len(got.Failure) > 1024 || strings.Contains(got.Failure, "\x1b") || !got.At.IsZero() {
		t.Errorf("read back %d bytes at %s", len(got.Failure), got.At)
	}
}
