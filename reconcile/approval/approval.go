// Package approval keeps a run to what a person has approved.
package approval

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// Rule is the name of what is decided in the place of an action that nobody has approved.
const Rule = "NotApproved"

// Approval says which actions a run may take.
type Approval interface {
	// Refuses says why an action of a cluster, by namespace/name, is not taken; empty if it may be.
	Refuses(cluster string, s decide.State, a decide.Action) string
	// Taken is told of an action that has changed something.
	Taken(cluster string, s decide.State, a decide.Action)
}

// Refused is what is decided in the place of an action that is refused.
func Refused(d decide.Decision, why string) decide.Decision {
	return decide.Decision{Rule: Rule, Verdict: decide.Block,
		Message: fmt.Sprintf("%s: %s would be next, and %s", d.Rule, d.Action, why)}
}

// NeverRestart approves what neither restarts, stops or removes a member or its data, nor leads there.
type NeverRestart struct{}

// Refuses lists what is allowed: an action that is new is refused before somebody has thought about it.
func (NeverRestart) Refuses(_ string, s decide.State, a decide.Action) string {
	runs := s.Declared.Lifecycle == decide.Running && s.Declared.Orphaned == ""
	switch a.(type) { //nolint:gochecksumtype // what is not named is refused
	case decide.AddLearner, decide.PromoteLearner, decide.Seal, decide.DisarmAlarm, decide.StartBackup,
		decide.RenewCertificates, decide.StartRestore, decide.FinishRestore:
		return ""
	case decide.Bootstrap, decide.Declare:
		if runs {
			return ""
		}
	case decide.ApplyObjects:
		if runs && decide.StandingRecord(s, "").Replicas() >= s.Objects.RunsReplicas {
			return ""
		}
	}
	return "--approve never-restart does nothing that restarts or removes a member, or leads there: " +
		"have a person run it without that"
}

// Taken needs to know nothing.
func (NeverRestart) Taken(string, decide.State, decide.Action) {}
