package report

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/road"
)

// Result is what a pass has come to: of what applies, that which matters most.
type Result string

// The results, in that order.
const (
	// Failed: something could not be read, observed, done or reported.
	Failed Result = "error"
	// Invalid: something is declared that cannot be acted on.
	Invalid Result = "invalid"
	// Blocked: a person is needed.
	Blocked Result = "blocked"
	// Locked: another pass is acting on a cluster.
	Locked Result = "locked"
	// OK: all has gone well. Something may be left to do.
	OK Result = "ok"
)

// Results are all of them.
func Results() []Result { return []Result{Failed, Invalid, Blocked, Locked, OK} }

// Result says what the pass has come to.
func (r Report) Result() Result {
	blocked, locked, failed, invalid := len(r.Removals) > 0, false, r.Error != "", len(r.Problems) > 0
	for _, c := range r.Clusters {
		failed = failed || c.Error != ""
		invalid = invalid || c.Decision.Rule == "InvalidSpec" ||
			len(c.State.Declared.Problems) > 0 && c.State.Declared.Orphaned == ""
		blocked = blocked || c.Decision.Verdict == decide.Block ||
			c.Decision.Verdict == decide.Done && c.State.CertificatesUrgent()
		locked = locked || c.Decision.Rule == decide.LockedElsewhere
	}
	switch {
	case failed:
		return Failed
	case invalid:
		return Invalid
	case blocked:
		return Blocked
	case locked:
		return Locked
	}
	return OK
}

// Risks are those of all roads, each once, from the least to the worst; none where all are safe.
func (r Report) Risks() []road.Risk {
	found := map[road.Risk]bool{road.Unknown: r.Compared != nil && len(r.Compared.Unknown) > 0}
	for _, c := range r.Clusters {
		if c.Road == nil {
			continue
		}
		for _, risk := range c.Road.Risks() {
			found[risk] = true
		}
	}
	return slices.DeleteFunc(road.Risks(), func(risk road.Risk) bool { return !found[risk] })
}

// Ready reports whether so many healthy voters are all that are declared, and are meant to serve; published says
// that clients have been told of them. It is not known while etcd does not say who its members are. An orphan is
// judged by etcd alone.
func (c Cluster) Ready(healthyVoters int, published bool) (is, known bool) {
	s, d := c.State, c.Decision
	if d.Rule == "MembershipUnknown" || s.Declared.Orphaned != "" && !s.Membership.Known {
		return false, false
	}
	stops := s.Declared.Lifecycle == decide.Stopped || s.Declared.Lifecycle == decide.Deleted
	complete := healthyVoters > 0 && healthyVoters == s.Declared.Replicas
	serving := complete && (published || !s.ClosedToClients())
	return serving && !stops && d.Verdict != decide.Block, true
}
