// Package report defines the result of a pass as a value, and renders it.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
)

// Report contains the observations, decisions and actions of a pass.
type Report struct {
	// Revision is the revision of the source that the pass acted on. It is empty if the source could not be read.
	Revision string `json:"revision,omitempty"`
	// Signer is the signer of the revision, if signatures are verified.
	Signer string `json:"signer,omitempty"`
	// Sources are the sources that Revision and Signer summarize, if there are several.
	Sources []Source `json:"sources,omitempty"`
	// Clusters are sorted by namespace and name. If there are several Kubernetes clusters, the clusters are grouped by
	// Kubernetes cluster first.
	Clusters []Cluster `json:"clusters"`
	// Problems are the problems with the declarations, with files and lines.
	Problems []Problem `json:"problems,omitempty"`
	// Warnings concern the sources.
	Warnings []string `json:"warnings,omitempty"`
	// Removals are the unconfirmed removals.
	Removals []Removal `json:"removals,omitempty"`
	// Error concerns the pass as a whole, such as a source that cannot be read.
	Error string `json:"error,omitempty"`
	// Unobserved is set if some objects could not be listed and a retry may succeed.
	Unobserved bool `json:"-"`
	// UnlistedIn are the namespaces that could not be listed. They may contain clusters that are not in this report.
	UnlistedIn []string `json:"-"`
	// Fetches are the results of reading the sources, except for sources that are still being read.
	Fetches []Fetch `json:"-"`
	// Others lists the existing clusters that are not in Clusters, as namespace/name: they take longer than a turn, or
	// the pass did not cover them.
	Others []string `json:"-"`
	// Compared is set if nothing was observed and every cluster is assumed to match a different revision.
	Compared *Comparison `json:"compared,omitempty"`
	// Planned is set if no action was executed.
	Planned bool `json:"planned,omitempty"`
}

// Cluster is the result of a pass for one cluster.
type Cluster struct {
	// Kubernetes is the name of the Kubernetes cluster that contains the cluster, if there are several.
	Kubernetes string
	Namespace  string
	Name       string
	// Decision is the zero value if the cluster could not be observed.
	Decision decide.Decision
	// Outcome is the outcome of the action, or nil if no action was executed.
	Outcome *Outcome
	// Warnings concern the declaration and the observed state.
	Warnings []string
	// Error is the error from observing, acting or reporting.
	Error string
	// State is the state that the decision is based on, for "-o state" and for the status.
	State decide.State
	// Custom is the custom resource as it was listed, with the status written by earlier passes. It is only set by
	// ObserveAll, and nil if the resource does not exist.
	Custom *v1alpha1.EtcdCluster
	// Road is the forecast of the cluster. It is set only in a plan, and only if the verdict is Act or Wait.
	Road *forecast.Forecast
	// Where is the position of the cluster's declaration, as a problem without a message. The file is empty if the
	// position is unknown.
	Where Problem
	// Changes are the differences between the declaration and the live state, in a plan. If two revisions are compared,
	// they are the differences between the two declarations.
	Changes []Change
	// News is the news about the cluster that this pass has reported.
	News []News
	// Events are the Kubernetes events of the cluster, newest last. NoEvents is the reason if they are unknown. Both
	// are empty unless events were requested.
	Events   []Event
	NoEvents string
}

// Event is an event that Quorate or Kubernetes has recorded for an object of a cluster.
type Event struct {
	// Object is the kind and name of the object.
	Object  string
	Warning bool
	// Reason is a single word, and Note is the text.
	Reason, Note string
	// At is when the event last occurred, and Count is how often it has occurred.
	At    time.Time
	Count int
}

// Outcome is the outcome of an action.
type Outcome struct {
	Changed bool   `json:"changed"`
	Detail  string `json:"detail,omitempty"`
	// Failure is why the action failed after it had begun. It is set only if the action must not simply be repeated.
	Failure string `json:"failure,omitempty"`
}

// Problem is a problem in a declaration.
type Problem struct {
	// Kubernetes is the name of the affected Kubernetes cluster, if not all are affected.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Source is the source that contains the file, if there are several sources.
	Source  string `json:"source,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Message string `json:"message"`
	// Beside is another source that declares the cluster.
	Beside string `json:"beside,omitempty"`
	// Place is the name of the source in the status.
	Place string `json:"-"`
	// Foreign is set if the cluster belongs to a different source, or if its source is unknown. The problem then does
	// not affect the cluster.
	Foreign bool `json:"-"`
}

// String returns file:line: message, prefixed with the source if there are several, and with the Kubernetes cluster if
// not all are affected.
func (p Problem) String() string {
	text := p.Message
	if p.Beside != "" {
		text += ": " + p.Beside
	}
	switch {
	case p.File != "" && p.Line == 0:
		text = p.File + ": " + text
	case p.File != "":
		text = fmt.Sprintf("%s:%d: %s", p.File, p.Line, text)
	}
	if p.Source != "" {
		text = p.Source + " " + text
	}
	if p.Kubernetes != "" {
		text = p.Kubernetes + ": " + text
	}
	return text
}

// MayOmit reports whether the report may omit existing clusters of a namespace, because they could not be listed.
func (r Report) MayOmit(namespace string) bool {
	return r.Unobserved && len(r.UnlistedIn) == 0 || slices.Contains(r.UnlistedIn, namespace)
}

// Key returns namespace/name.
func (c Cluster) Key() string { return c.Namespace + "/" + c.Name }

// Renews reports whether the pass has reissued all certificates that were due.
func (c Cluster) Renews() bool {
	return c.Outcome != nil && decide.TraitsOf(c.Decision.Action).IssuesCertificates
}

// Pending reports whether something is left to do for the cluster.
func (c Cluster) Pending() bool {
	return c.Decision.Verdict == decide.Act || c.Decision.Verdict == decide.Wait
}

// BeingFounded reports whether the bootstrap has progressed far enough that an initial member may start. A blocked
// bootstrap does not count, because it may wait for manual action indefinitely.
func (c Cluster) BeingFounded() bool {
	_, founds := c.Decision.Action.(decide.Bootstrap)
	founds = founds && c.Outcome != nil && c.Outcome.Changed
	starts := c.State.Objects.RunsReplicas > 0 || len(c.State.Replicas) > 0
	for _, m := range c.State.Record.Members {
		founds = founds || m.Mode == decide.Founding && starts
	}
	return founds && c.Pending()
}

// MarshalJSON writes the machine-readable form, which is a contract: see docs/reference/report.md.
func (c Cluster) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kubernetes string             `json:"kubernetes,omitempty"`
		Namespace  string             `json:"namespace"`
		Name       string             `json:"name"`
		Decision   *decision          `json:"decision,omitempty"`
		Outcome    *Outcome           `json:"outcome,omitempty"`
		Changes    []Change           `json:"changes,omitempty"`
		Road       *forecast.Forecast `json:"road,omitempty"`
		Warnings   []string           `json:"warnings,omitempty"`
		Error      string             `json:"error,omitempty"`
		// Certificates are sorted by expiry.
		Certificates []decide.Certificate `json:"certificates,omitempty"`
	}{c.Kubernetes, c.Namespace, c.Name, newDecision(c.Decision), c.Outcome, c.Changes, c.Road, c.Warnings, c.Error,
		c.State.CertificatesInOrder()})
}

type decision struct {
	Rule    string         `json:"rule"`
	Verdict decide.Verdict `json:"verdict"`
	Action  *action        `json:"action,omitempty"`
	Message string         `json:"message"`
}

type action struct {
	Kind   string        `json:"kind"`
	Fields decide.Action `json:"fields"`
}

func newDecision(d decide.Decision) *decision {
	if d.Rule == "" {
		return nil
	}
	out := &decision{Rule: d.Rule, Verdict: d.Verdict, Message: d.Message}
	if d.Action != nil {
		out.Action = &action{Kind: decide.KindOf(d.Action), Fields: d.Action}
	}
	return out
}

// JSON renders the report as JSON.
func JSON(w io.Writer, r Report) error {
	if r.Clusters == nil {
		r.Clusters = []Cluster{}
	}
	return Encode(w, struct {
		Report
		Digest string `json:"digest,omitempty"`
	}{r, r.Digest()})
}

// Encode writes a value as JSON that is safe for terminals and CI logs.
func Encode(w io.Writer, value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(printable.JSON(b.Bytes()))
	return err
}
