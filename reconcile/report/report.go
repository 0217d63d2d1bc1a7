// Package report holds what a pass has to say, as one value, and renders it.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/road"
	"quorate.dev/quorate/visible"
)

// Report is what one pass saw, decided and did.
type Report struct {
	// Revision of the source that was acted on; empty if it could not be read.
	Revision string `json:"revision,omitempty"`
	// Signer of the revision, where signatures are verified.
	Signer string `json:"signer,omitempty"`
	// Sources are what Revision and Signer stand for, if there are several.
	Sources []Source `json:"sources,omitempty"`
	// Clusters by namespace and name, and before that by Kubernetes cluster where there are several.
	Clusters []Cluster `json:"clusters"`
	// Problems of the declarations, by file and line.
	Problems []Problem `json:"problems,omitempty"`
	// Warnings about the sources.
	Warnings []string `json:"warnings,omitempty"`
	// Removals that nobody has confirmed.
	Removals []Removal `json:"removals,omitempty"`
	// Error that concerns the pass as a whole, such as a source that cannot be read.
	Error string `json:"error,omitempty"`
	// Unobserved: the live side could not be read, and another pass may be luckier.
	Unobserved bool `json:"-"`
	// UnlistedIn are the namespaces that could not be looked at. There may be clusters in them that this report says
	// nothing of.
	UnlistedIn []string `json:"-"`
	// Fetches are what became of reading each source, but for those that are still being read.
	Fetches []Fetch `json:"-"`
	// Others are the clusters, as namespace/name, that there are and that this report says nothing of: they take
	// longer, or the pass was not about them.
	Others []string `json:"-"`
	// Compared is set where nothing was observed: everything is taken to be as another revision declares it.
	Compared *Comparison `json:"compared,omitempty"`
	// Planned: nothing was carried out.
	Planned bool `json:"planned,omitempty"`
}

// Cluster is what a pass has to say of one cluster.
type Cluster struct {
	// Kubernetes is the name of the Kubernetes cluster that it is in, where there are several.
	Kubernetes string
	Namespace  string
	Name       string
	// Decision is the zero value if the cluster could not be observed.
	Decision decide.Decision
	// Outcome of the action; nil if none was carried out.
	Outcome *Outcome
	// Warnings about the declaration.
	Warnings []string
	// Error of observing, acting or reporting.
	Error string
	// State that was decided on, for "-o state" and for status.
	State decide.State
	// Custom is the custom resource as it was listed, of which the status says what passes have seen before; nil but
	// in a look, or if there is none.
	Custom *v1alpha1.EtcdCluster
	// Road is what lies before the cluster; nil but in a plan, and where no action follows.
	Road *road.Road
	// Where it is declared: a problem without a message. Its file is empty if that is not known.
	Where Problem
	// Changes are what differs between what is declared and what lives, in a plan; or between two revisions of its
	// declaration, where these are compared.
	Changes []Change
	// News are what this pass has told of it and the one before has not.
	News []News
	// Events that Kubernetes has of it, the newest last, and why they are not known; nil and empty unless they were
	// asked for.
	Events   []Event
	NoEvents string
}

// Event is something that Quorate or Kubernetes has told of an object of a cluster.
type Event struct {
	// Object by its kind and name.
	Object  string
	Warning bool
	// Reason in one word, and Note, which says it to people.
	Reason, Note string
	// At is when it was last seen, of Count times.
	At    time.Time
	Count int
}

// Outcome is what an action did.
type Outcome struct {
	Changed bool   `json:"changed"`
	Detail  string `json:"detail,omitempty"`
}

// Problem is something wrong in a declaration.
type Problem struct {
	// Kubernetes is the name of the Kubernetes cluster that it is a problem in, where it is not one in all.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Source that the file is in, where there are several.
	Source  string `json:"source,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Message string `json:"message"`
	// Beside is another source that declares the cluster.
	Beside string `json:"beside,omitempty"`
	// Place is the name of the source in status.
	Place string `json:"-"`
	// Foreign: the cluster is another source's, or it cannot be known whose, so it is held up by
	// nothing of this.
	Foreign bool `json:"-"`
}

// String returns file:line: message, after the source where there are several, and the Kubernetes cluster where it is
// of one of several.
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

// Key is namespace/name.
func (c Cluster) Key() string { return c.Namespace + "/" + c.Name }

// Renews reports whether the pass has reissued certificates, if any was due.
func (c Cluster) Renews() bool {
	_, founds := c.Decision.Action.(decide.Bootstrap)
	_, applies := c.Decision.Action.(decide.ApplyObjects)
	_, renews := c.Decision.Action.(decide.RenewCertificates)
	return c.Outcome != nil && (founds || applies || renews)
}

// Pending reports whether something is left to do for the cluster.
func (c Cluster) Pending() bool {
	return c.Decision.Verdict == decide.Act || c.Decision.Verdict == decide.Wait
}

// BeingFounded reports whether a founding has come so far that a member may start as one that
// founds the cluster. One that is blocked waits for a person, however long.
func (c Cluster) BeingFounded() bool {
	_, founds := c.Decision.Action.(decide.Bootstrap)
	founds = founds && c.Outcome != nil && c.Outcome.Changed
	starts := c.State.Objects.RunsReplicas > 0 || len(c.State.Replicas) > 0
	for _, m := range c.State.Record.Members {
		founds = founds || m.Mode == decide.Founding && starts
	}
	return founds && c.Pending()
}

// MarshalJSON writes the report's contract with machines: see docs/reference/report.md.
func (c Cluster) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kubernetes string     `json:"kubernetes,omitempty"`
		Namespace  string     `json:"namespace"`
		Name       string     `json:"name"`
		Decision   *decision  `json:"decision,omitempty"`
		Outcome    *Outcome   `json:"outcome,omitempty"`
		Changes    []Change   `json:"changes,omitempty"`
		Road       *road.Road `json:"road,omitempty"`
		Warnings   []string   `json:"warnings,omitempty"`
		Error      string     `json:"error,omitempty"`
		// Certificates by when they expire.
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

// JSON renders the report for machines.
func JSON(w io.Writer, r Report) error {
	if r.Clusters == nil {
		r.Clusters = []Cluster{}
	}
	return Encode(w, struct {
		Report
		Digest string `json:"digest,omitempty"`
	}{r, r.Digest()})
}

// Encode writes a value as JSON that can be shown on a terminal and in the log of a CI system.
func Encode(w io.Writer, value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(visible.JSON(b.Bytes()))
	return err
}
