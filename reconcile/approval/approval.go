// Package approval restricts a run to approved actions.
package approval

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// Rule is the rule name in the decision that replaces an unapproved action.
const Rule = "NotApproved"

// Approval decides which actions a run may execute.
type Approval interface {
	// Refuses returns the reason why an action on a cluster, given as namespace/name, is not allowed, or "" if it is.
	Refuses(cluster string, s decide.State, a decide.Action) string
	// Taken is called after an action that changed something.
	Taken(cluster string, s decide.State, a decide.Action)
}

// Refused returns the decision that replaces a refused action.
func Refused(d decide.Decision, why string) decide.Decision {
	return decide.Decision{Rule: Rule, Verdict: decide.Block,
		Message: fmt.Sprintf("%s: the next action is %s, but %s", d.Rule, d.Action, why)}
}

// NeverRestart approves actions that do not restart, stop or remove a member or its data, and do not lead to an action
// that does.
type NeverRestart struct{}

// Refuses returns the reason why an action is not allowed, or "" if it is.
func (NeverRestart) Refuses(_ string, s decide.State, a decide.Action) string {
	runs := s.Declared.Lifecycle == decide.Running && s.Declared.Orphaned == ""
	allowed := decide.ToDefragment(s, a)
	switch decide.TraitsOf(a).NeverRestart {
	case decide.Allowed:
		allowed = true
	case decide.AllowedIfRunning:
		allowed = runs
	case decide.AllowedIfNoneLeaves:
		allowed = runs && decide.RequiredRecord(s, "").Replicas() >= s.Objects.RunsReplicas
	case decide.Refused:
	}
	if allowed {
		return ""
	}
	return "--approve never-restart does not allow actions that restart or remove a member, or that lead to such " +
		"actions: to allow them, run Quorate manually without this flag"
}

// Taken does nothing.
func (NeverRestart) Taken(string, decide.State, decide.Action) {}
