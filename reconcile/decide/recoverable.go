package decide

// quorumMayRecover reports whether enough recorded members for quorum may still come up by themselves. Every guest
// counts, because it is unknown whether guests will come up.
func (s State) quorumMayRecover() bool {
	recoverable := len(s.Record.Guests)
	for _, m := range s.Record.Members {
		if !s.unrecoverable(m.Ordinal) {
			recoverable++
		}
	}
	return recoverable >= Quorum(len(s.Record.Members)+len(s.Record.Guests))
}

// unrecoverable reports whether an unresponsive member cannot come up by itself, or should have come up long ago.
func (s State) unrecoverable(ordinal int) bool {
	r := s.Replica(ordinal)
	m, _ := s.Record.Member(ordinal)
	goes := m.Mode == Sealed && s.volumeGoesWithPod(r) // any other member may start on the next volume
	return s.volumeLost(ordinal) || goes || r.Stranded != "" || s.failsForLong(r)
}

// failsForLong reports whether a pod has been failing for a long time, or starting for a very long time.
func (s State) failsForLong(r Replica) bool {
	if r.Pod == PodReady || r.PodSince.IsZero() {
		return false
	}
	since := s.Now.Sub(r.PodSince)
	return since >= longPatience || r.Pod == PodFailing && since >= patience
}

// volumeLost reports whether a sealed member no longer has the volume with which it was sealed.
func (s State) volumeLost(ordinal int) bool {
	m, _ := s.Record.Member(ordinal)
	return m.VolumeUID != "" && s.Replica(ordinal).VolumeUID != m.VolumeUID
}
