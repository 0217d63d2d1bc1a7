package forecast

import (
	"encoding/json"

	"quorate.dev/quorate/reconcile/decide"
)

// MarshalJSON writes the forecast as described in docs/reference/report.md.
func (r Forecast) MarshalJSON() ([]byte, error) {
	type end struct {
		Rule    string         `json:"rule"`
		Verdict decide.Verdict `json:"verdict"`
	}
	out := struct {
		Risks []Risk `json:"risks"`
		Start Quorum `json:"start"`
		Steps []Step `json:"steps"`
		End   *end   `json:"end,omitempty"`
	}{r.Risks(), r.Start, r.Steps, nil}
	if out.Risks == nil {
		out.Risks = []Risk{}
	}
	if out.Steps == nil {
		out.Steps = []Step{}
	}
	if !r.Open {
		out.End = &end{r.End.Rule, r.End.Verdict}
	}
	return json.Marshal(out)
}

// MarshalJSON writes the step as described in docs/reference/report.md.
func (step Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Rule     string   `json:"rule"`
		Kind     string   `json:"kind"`
		What     string   `json:"what"`
		Before   Quorum   `json:"before"`
		Lowest   Quorum   `json:"lowest"`
		After    Quorum   `json:"after"`
		Starts   []string `json:"starts,omitempty"`
		Restarts []string `json:"restarts,omitempty"`
		Stops    []string `json:"stops,omitempty"`
		Creates  []string `json:"createsVolumes,omitempty"`
		Deletes  []string `json:"deletesVolumes,omitempty"`
	}{step.Rule, decide.KindOf(step.Action), step.What, step.Before, step.Lowest, step.After,
		step.Starts, step.Restarts, step.Stops, step.Creates, step.Deletes})
}
