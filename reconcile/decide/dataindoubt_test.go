package decide

import (
	"strings"
	"testing"
	"time"
)

// TestDataInDoubt checks that a free slot is filled only from a leader in the majority; otherwise Quorate waits for a
// majority, or manual action is required.
func TestDataInDoubt(t *testing.T) {
	more := both(declared(5), leftOver(0xd1, "CORRUPT"))
	askVerdict(t, dataInDoubt, map[string]verdictCase{
		"no doubt":                              {4, declared(5), ""},
		"a majority that includes the leader":   {4, both(more, holds(2, 2, 2, 0)), Act},
		"a majority, the leader's hash unknown": {4, both(more, holds(0, 2, 2, 2)), Block},
		"a majority, but no free slot":          {4, both(more, holds(2, 2, 2, 0), declared(4)), Block},
		"one member is starting":                {4, both(more, holds(2, 1, 0, 0), func(s *State) { s.down(PodStarting, time.Minute, 3) }), Wait},
	})
	for what, c := range map[string]struct {
		change func(*State)
		want   time.Duration
	}{"stopped by its check": {halts(1, 1, 0), 10 * time.Second}, "differing hashes": {holds(1, 1, 2), 10 * time.Second}, "a CORRUPT alarm": {alarms(1, "CORRUPT"), 500 * time.Millisecond}} {
		if got := after(3, c.change).untilJudged(); got != c.want {
			t.Errorf("%s: checked again in %s", what, got)
		}
	}
	s := after(4, both(holds(1, 1, 0, 1), learns(3), func(s *State) { s.Membership.Members[2].HashWhy = "no answer" }))
	if got := s.describeHashes(); got != "at revision 120, compacted at 100: hash 00000001 on a-0 and a-1; hash unknown for a-2 (no answer)" {
		t.Errorf("hashes are described as %q", got)
	}
	if got := after(1, nil).adviceInDoubt(); !strings.HasPrefix(got, "There is no other") {
		t.Errorf("advice for the only member: %q", got)
	}
}
