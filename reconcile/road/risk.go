package road

import (
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// Risk is what a road asks of a cluster at worst.
type Risk string

// The risks, from the least to the worst.
const (
	// Safe: no member that serves is restarts.
	Safe Risk = "safe"
	// RestartsMembers: pods of members are recreated.
	RestartsMembers Risk = "restarts-members"
	// LosesTolerance: for a while, no further voter may fail, although one may now.
	LosesTolerance Risk = "loses-tolerance"
	// LosesQuorum: for a while or for good, etcd serves nobody, although it does now.
	LosesQuorum Risk = "loses-quorum"
	// DeletesData: volumes are deleted, or data are given up: a new cluster takes the place of one that is lost.
	DeletesData Risk = "deletes-data"
	// Unknown: where the road leads cannot be foretold, or it ends at a wait for what only the world can end.
	Unknown Risk = "unknown"
	// IsBlocked: a person is needed, now or later on the road.
	IsBlocked Risk = "blocked"
)

// Risks are all of them, from the least to the worst.
func Risks() []Risk {
	return []Risk{Safe, RestartsMembers, LosesTolerance, LosesQuorum, DeletesData, Unknown, IsBlocked}
}

// Risks are those of the road, from the least to the worst, without Safe; none if it is safe.
func (r Road) Risks() []Risk {
	var lowest, restarts, deletes = r.Start.Spare(), false, false
	served, stops := r.Start.serves(), false
	for _, step := range r.Steps {
		lowest = min(lowest, step.Lowest.Spare())
		restarts = restarts || len(step.Restarts) > 0
		deletes = deletes || givesUp(step.Action) || len(step.Deletes) > 0
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

// givesUp reports whether an action gives up data: a volume, or what a cluster held that is lost.
func givesUp(a decide.Action) bool {
	switch a.(type) {
	case decide.DeleteVolume, decide.StartRecovery, decide.FinishRecovery:
		return true
	case decide.AddLearner, decide.ApplyObjects, decide.Bootstrap, decide.CancelDowngrade, decide.Declare,
		decide.DeleteObjects, decide.DisarmAlarm, decide.DiscardBackup, decide.EnableDowngrade, decide.FinishRestore,
		decide.MoveLeader, decide.PromoteLearner, decide.RemoveMember, decide.RenewCertificates,
		decide.RestartReplica, decide.Seal, decide.StartBackup, decide.StartRestore, decide.StartRollout,
		decide.StopPods, decide.StopReplicas, decide.StopRecovery, decide.StopRestore:
	}
	return false
}

// String returns the name with spaces.
func (r Risk) String() string { return strings.ReplaceAll(string(r), "-", " ") }
