package forecast

import (
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// Risk is an effect that the actions of a forecast may have on a cluster.
type Risk string

// The risks, least severe first.
const (
	// Safe means that serving members do not restart.
	Safe Risk = "safe"
	// RestartsMembers means that pods of members are recreated.
	RestartsMembers Risk = "restarts-members"
	// LosesTolerance means that the cluster temporarily cannot tolerate the failure of a voter, although it can now.
	LosesTolerance Risk = "loses-tolerance"
	// LosesQuorum means that etcd temporarily or permanently stops serving after it has served.
	LosesQuorum Risk = "loses-quorum"
	// DeletesData means that volumes are deleted, or that data is discarded because a lost cluster is replaced.
	DeletesData Risk = "deletes-data"
	// Unknown means that the outcome cannot be predicted, or that the forecast ends with a wait for an external event.
	Unknown Risk = "unknown"
	// IsBlocked means that manual action is required, now or later in the forecast.
	IsBlocked Risk = "blocked"
)

// Risks returns all risks, least severe first.
func Risks() []Risk {
	return []Risk{Safe, RestartsMembers, LosesTolerance, LosesQuorum, DeletesData, Unknown, IsBlocked}
}

// Risks returns the risks of the forecast, least severe first. The list is empty if the forecast is safe.
func (r Forecast) Risks() []Risk {
	var lowest, restarts, deletes = r.Start.Spare(), false, false
	served, stops := r.Start.serves(), false
	for _, step := range r.Steps {
		lowest = min(lowest, step.Lowest.Spare())
		restarts = restarts || len(step.Restarts) > 0
		deletes = deletes || decide.TraitsOf(step.Action).DiscardsData || len(step.Deletes) > 0
		served = served || step.Before.serves()
		stops = stops || served && step.Lowest.Voters > 0 && !step.Lowest.serves()
		served = served || step.After.serves()
	}
	formed := r.Start.Voters > 0
	var list []Risk
	for _, risk := range []struct {
		Risk
		applies bool
	}{
		{RestartsMembers, restarts},
		{LosesTolerance, formed && r.Start.Spare() > 0 && lowest <= 0},
		{LosesQuorum, stops},
		{DeletesData, deletes},
		{Unknown, r.Open || r.unasked || r.End.Verdict == decide.Wait},
		{IsBlocked, r.End.Verdict == decide.Block},
	} {
		if risk.applies {
			list = append(list, risk.Risk)
		}
	}
	return list
}

// String returns the name of the risk, with spaces instead of hyphens.
func (r Risk) String() string { return strings.ReplaceAll(string(r), "-", " ") }
