package report

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
)

// Result is the most serious result of a pass.
type Result string

// The results, most serious first.
const (
	// Failed means that something could not be read, observed, done or reported.
	Failed Result = "error"
	// Invalid means that a declaration cannot be acted on.
	Invalid Result = "invalid"
	// Blocked means that manual action is required.
	Blocked Result = "blocked"
	// Locked means that another pass is acting on a cluster.
	Locked Result = "locked"
	// OK means that there were no problems. Something may be left to do.
	OK Result = "ok"
)

// Results returns all results.
func Results() []Result { return []Result{Failed, Invalid, Blocked, Locked, OK} }

// Result returns the result of the pass.
func (r Report) Result() Result {
	blocked, locked, failed, invalid := len(r.Removals) > 0, false, r.Error != "", len(r.Problems) > 0
	for _, c := range r.Clusters {
		failed = failed || c.Error != ""
		invalid = invalid || c.Decision.Rule == decide.InvalidSpec ||
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

// Risks returns the risks of all forecasts without duplicates, least severe first, or none if all forecasts are safe.
func (r Report) Risks() []forecast.Risk {
	found := map[forecast.Risk]bool{forecast.Unknown: r.Compared != nil && len(r.Compared.Unknown) > 0}
	for _, c := range r.Clusters {
		if c.Road == nil {
			continue
		}
		for _, risk := range c.Road.Risks() {
			found[risk] = true
		}
	}
	return slices.DeleteFunc(forecast.Risks(), func(risk forecast.Risk) bool { return !found[risk] })
}

// Ready reports whether the cluster has as many healthy voters as declared and is meant to serve clients. published
// means that the status lists endpoints for clients. known is false if the rule MembershipUnknown applied, or if the
// cluster is an orphan whose member list is unknown.
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
