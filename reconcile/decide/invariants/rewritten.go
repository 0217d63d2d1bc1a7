package invariants

import "quorate.dev/quorate/reconcile/decide"

// fieldsAsApplied allows only the actions of the rules before FieldsRewritten.
func fieldsAsApplied(s decide.State, d decide.Decision) string {
	if d.Verdict != decide.Act || s.Declared.Lifecycle != decide.Running {
		return ""
	}
	for _, f := range s.Objects.Rewritten {
		if f.Accepted {
			continue
		}
		switch d.Action.(type) {
		case decide.ApplyObjects, decide.Bootstrap, decide.Declare, decide.RenewCertificates, decide.Seal,
			decide.StopPods, decide.StopReplicas, decide.StartRecovery, decide.StopRecovery, decide.FinishRecovery:
			return ""
		}
		return "acts although admission rewrites " + f.Field + " of " + f.Object
	}
	return ""
}
