package invariants

import (
	"fmt"
	"regexp"

	"quorate.dev/quorate/reconcile/decide"
)

// together matches the token of a cluster whose members have all been started with two learners allowed.
var together = regexp.MustCompile(`-l2$`)

// muchData is the largest database that a leader may send to two learners at the same time.
const muchData = 256 << 20

func fewLearners(s decide.State, d decide.Decision) string {
	learners := len(s.Membership.Members) - len(voters(s))
	switch a := d.Action.(type) {
	case decide.AddLearner:
		if learners > 0 {
			return notBesideAnother(s, learners)
		}
	case decide.PromoteLearner:
		for _, m := range voters(s) {
			if m.Disagrees != "" && (learners > 1 || s.Record.JoinedTogether) {
				return fmt.Sprintf("%s, but %s %s", a, m.Name, m.Disagrees)
			}
		}
	}
	return ""
}

// notBesideAnother returns why a learner must not be added alongside existing learners.
func notBesideAnother(s decide.State, learners int) string {
	if learners > 1 {
		return fmt.Sprintf("adds a learner although %d learners already exist", learners)
	}
	if !s.Record.JoinedTogether {
		return "adds a second learner, but the record does not show it"
	}
	if together.FindStringSubmatch(s.Record.Token) == nil {
		return "adds a second learner, but members may allow only one"
	}
	if s.Membership.Downgrade != "" || len(s.Membership.StaleAlarms) > 0 {
		return "adds a second learner during a downgrade or an alarm"
	}
	for _, m := range s.Membership.Members {
		major, minor, known := minorOf(m.Version)
		switch {
		case m.Learner && !running(s, m):
			return "adds a second learner while the first may still have to start"
		case m.Learner:
		case !known || major != 3 || minor < 6:
			return fmt.Sprintf("adds a second learner, but %s may allow only one", m.Name)
		case m.DBSize <= 0 || m.DBSize > muchData:
			return fmt.Sprintf("adds a second learner, but %s may have a large database", m.Name)
		case !m.Answers || m.Disagrees != "" || len(m.Alarms) > 0:
			return fmt.Sprintf("adds a second learner, but %s is not healthy", m.Name)
		}
	}
	return ""
}

// running reports whether a learner has joined and starts only with its data, and its pod runs on a volume that is
// kept.
func running(s decide.State, m decide.Member) bool {
	ordinal, ours := slotOf(s, m)
	recorded, known := recordedAt(s.Record, ordinal)
	r := replicaAt(s, ordinal)
	return ours && m.Learner && m.Started && known && recorded.Mode == decide.Sealed && !r.VolumeTerminating &&
		(recorded.VolumeUID == "" || recorded.VolumeUID == r.VolumeUID) &&
		(r.Pod == decide.PodStarting || r.Pod == decide.PodReady)
}
