package decide

import "time"

// patience is how long a pod may fail before it is given up. Containers that exit are started again, images that cannot
// be had may be had later: Kubernetes gets over most of it by itself.
const patience = 2 * time.Minute

// quorumMayComeUp reports whether enough of the recorded members may still come up by themselves.
func (s State) quorumMayComeUp() bool {
	hopeful := 0
	for _, m := range s.Record.Members {
		if !s.beyondHope(m.Ordinal) {
			hopeful++
		}
	}
	return hopeful >= Quorum(len(s.Record.Members))
}

// beyondHope reports whether a silent member cannot come up by itself.
func (s State) beyondHope(ordinal int) bool {
	return s.volumeLost(ordinal) || s.Replica(ordinal).Stranded != "" || s.failsForLong(s.Replica(ordinal))
}

func (s State) failsForLong(r Replica) bool {
	return r.Pod == PodFailing && !r.PodSince.IsZero() && s.Now.Sub(r.PodSince) >= patience
}

// volumeLost reports whether a sealed member has no longer the volume that it was sealed with.
func (s State) volumeLost(ordinal int) bool {
	m, _ := s.Record.Member(ordinal)
	return m.VolumeUID != "" && s.Replica(ordinal).VolumeUID != m.VolumeUID
}
