package findings

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// The types for the parts of SARIF 2.1.0 that Quorate writes.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
		ColumnKind  string            `json:"columnKind"`
		Properties  *sarifProperties  `json:"properties,omitempty"`
	}
	sarifProperties struct {
		Digest  string   `json:"digest,omitempty"`
		Assumed []string `json:"assumed,omitempty"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string       `json:"id"`
		ShortDescription sarifMessage `json:"shortDescription"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool                `json:"executionSuccessful"`
		Notifications       []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   Level        `json:"level"`
		Message sarifMessage `json:"message"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     Level           `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
		Logical []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// mostResults is the maximum number of results that GitHub shows.
const mostResults = 5000

// SARIF writes the findings in a report as SARIF 2.1.0. version is the version of Quorate. A finding in a file is a
// result. A finding without a file is a notification, because tools show each result in its file. If nothing was
// observed, the assumptions are notifications too. The digest and the assumptions of a plan are properties.
func SARIF(w io.Writer, version string, r report.Report, findings []Finding) error {
	run := sarifRun{Results: []sarifResult{}, ColumnKind: "unicodeCodePoints"}
	run.Tool.Driver = sarifDriver{Name: "Quorate", Version: version, Rules: []sarifRule{}}
	done, left := sarifInvocation{ExecutionSuccessful: true}, 0
	notify := func(level Level, text string) {
		done.Notifications = append(done.Notifications, sarifNotification{level, sarifMessage{unlinked(text)}})
	}
	for _, f := range findings {
		done.ExecutionSuccessful = done.ExecutionSuccessful && f.Rule != Unread
		switch {
		case f.File == "" && f.Cluster != "":
			notify(f.Level, f.Cluster+": "+f.Message)
		case f.File == "":
			notify(f.Level, f.Message)
		case len(run.Results) == mostResults:
			left++
		default:
			run.Results = append(run.Results, run.Tool.Driver.result(f))
		}
	}
	assumed := r.Assumed()
	if r.Compared != nil {
		for _, sentence := range assumed {
			notify("note", sentence)
		}
	}
	if digest := r.Digest(); digest != "" || len(assumed) > 0 {
		run.Properties = &sarifProperties{digest, assumed}
	}
	if left > 0 {
		notify(Error, fmt.Sprintf("%s omitted", decide.Count(left, "other result")))
	}
	run.Invocations = []sarifInvocation{done}
	return report.Encode(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

// result returns the result for a finding in a file, and adds its rule if the rule is missing.
func (d *sarifDriver) result(f Finding) sarifResult {
	index := slices.IndexFunc(d.Rules, func(rule sarifRule) bool { return rule.ID == f.Rule })
	if index < 0 {
		index = len(d.Rules)
		d.Rules = append(d.Rules, sarifRule{f.Rule, sarifMessage{describe(f.Rule)}})
	}
	var at sarifLocation
	at.Physical.Artifact.URI = (&url.URL{Path: f.File}).String()
	if f.Line > 0 {
		at.Physical.Region = &sarifRegion{f.Line}
	}
	if f.Cluster != "" {
		at.Logical = []sarifLogical{{f.Cluster, "resource"}}
	}
	return sarifResult{f.Rule, index, f.Level, sarifMessage{unlinked(f.Message)}, []sarifLocation{at}}
}

// unlinked disables links in a text: in SARIF messages, [words](address) is a link.
func unlinked(text string) string { return strings.ReplaceAll(text, "](", "] (") }

// describe returns the description of a rule.
func describe(rule string) string {
	switch rule {
	case Unread:
		return "a read, observation, action or report failed"
	case Problem:
		return "a declaration is not valid"
	case Risk:
		return "the declaration has a risk listed in --fail-on"
	case Advice:
		return "not an error, but a warning"
	}
	for _, r := range decide.Rules() {
		if r.Name == rule {
			return r.About
		}
	}
	return rule
}
