package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/report"
)

// SourceState is a source at one revision.
type SourceState struct {
	// Name identifies the source: its location, followed by ",path=" and its path if it has one.
	Name string
	// Label is the source's name in reports, as given by the user.
	Label string
	// Revision is the revision that was read, or empty; Signer is its signer, if signatures are verified.
	Revision, Signer string
	// Committed is the commit time of the revision, or zero if it is unknown.
	Committed time.Time
	// Unread is the reason why the source could not be read or was refused. Its declarations are then unknown. Unread
	// is nil if the source was read and not refused.
	Unread error
	// At returns the time at which the source was last read, or reading it last failed. At is nil before the first
	// read.
	At func() time.Time
	// Follows reports whether the revision equals or descends from another revision. An error means that the ancestry
	// is unknown: ErrReading means that it is not known yet, and ErrGone means that the source no longer contains the
	// revision. Follows is nil if ancestry does not matter.
	Follows func(ctx context.Context, revision string) (bool, error)
	// Namespaces limits the namespaces in which the source may declare clusters.
	Namespaces Namespaces
	// Unlisted is set if some of these namespaces could not be listed.
	Unlisted bool
	// Refuses returns the pod settings of a cluster that are not allowed.
	Refuses Policy
	// Signed is set if signatures are required. A revision is then refused if its ancestry is unknown.
	Signed bool
}

// Namespaces are the namespaces in which clusters may be declared; empty means all.
type Namespaces []string

// Allow reports whether clusters may be declared in a namespace.
func (n Namespaces) Allow(namespace string) bool {
	return len(n) == 0 || slices.Contains(n, namespace)
}

// Policy returns the pod settings of a declaration that are not allowed, each as a problem. A nil policy allows
// everything.
type Policy func(spec v1alpha1.EtcdClusterSpec) []string

// Refusals returns the policy's objections to a declaration.
func (p Policy) Refusals(spec v1alpha1.EtcdClusterSpec) []string {
	if p == nil {
		return nil
	}
	return p(spec)
}

// Location returns the name of a source without its path.
func Location(source string) string {
	source, _, _ = strings.Cut(source, ",")
	return source
}

// SameLocation reports whether two sources, identified by name, have the same location.
func SameLocation(a, b string) bool { return Location(a) == Location(b) }

// Summarize sets the combined revision and signer from all sources that were read.
func (d *Desired) Summarize() {
	var revisions, signers []string
	for _, p := range d.Sources {
		if p.Unread != nil {
			continue
		}
		revisions, signers = append(revisions, p.Revision), append(signers, p.Signer)
	}
	d.Revision, d.Signer = strings.Join(distinct(revisions), " "), strings.Join(distinct(signers), ", ")
}

// SourcesRead returns the revision of each source, or nil if there are fewer than two sources, because a single source
// needs no name.
func (d Desired) SourcesRead() []report.Source {
	if len(d.Sources) < 2 {
		return nil
	}
	var list []report.Source
	for _, p := range d.Sources {
		s := report.Source{Source: cmp.Or(p.Label, p.Name)}
		if p.Unread == nil {
			s.Revision, s.Signer = p.Revision, p.Signer
		}
		list = append(list, s)
	}
	return list
}

// fetches returns the result of reading each source. Sources that are still being read are omitted.
func (d Desired) fetches() []report.Fetch {
	var list []report.Fetch
	for _, p := range d.Sources {
		if errors.Is(p.Unread, ErrReading) {
			continue
		}
		f := report.Fetch{Source: cmp.Or(p.Label, p.Name), Revision: p.Revision, Committed: p.Committed,
			Failed: p.Unread != nil}
		if p.At != nil {
			f.At = p.At()
		}
		list = append(list, f)
	}
	return list
}

// distinct returns the non-empty words without duplicates, in their original order.
func distinct(words []string) []string {
	var list []string
	for _, w := range words {
		if w != "" && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// Failure returns the reasons why sources could not be read, or nil if all sources were read.
func (d Desired) Failure() error {
	errs := []error{d.Unread}
	for _, p := range d.Sources {
		errs = append(errs, p.Unread)
	}
	return errors.Join(errs...)
}

// AnyRead reports whether at least one source was read, so that some declarations are known.
func (d Desired) AnyRead() bool {
	return d.Unread == nil && slices.ContainsFunc(d.Sources, func(p SourceState) bool { return p.Unread == nil })
}

// Refused returns the desired state as if the source with this name had not been readable.
func (d Desired) Refused(name string, why error) Desired {
	d.Sources = slices.Clone(d.Sources)
	for i := range d.Sources {
		if p := &d.Sources[i]; p.Name == name {
			p.Unread = why
		}
	}
	d.Clusters = slices.DeleteFunc(slices.Clone(d.Clusters), func(c Declaration) bool { return c.Source == name })
	d.Problems = slices.DeleteFunc(slices.Clone(d.Problems), func(p report.Problem) bool { return p.Place == name })
	d.Summarize()
	return d
}

// State returns the source with this name, and whether it exists.
func (d Desired) State(name string) (SourceState, bool) {
	i := slices.IndexFunc(d.Sources, func(p SourceState) bool { return p.Name == name })
	if i < 0 {
		return SourceState{}, false
	}
	return d.Sources[i], true
}

// StateOf returns the source of this run that corresponds to the source of an earlier declaration: the source with the
// same name, or the run's only source if it has the same location or the earlier source is unknown.
func (d Desired) StateOf(source string) (SourceState, bool) {
	if p, ok := d.State(source); ok {
		return p, true
	}
	if len(d.Sources) == 1 && (source == "" || SameLocation(source, d.Sources[0].Name)) {
		return d.Sources[0], true
	}
	return SourceState{}, false
}

// sourceOf returns a function that returns the source of a cluster's declaration, without revealing other sources.
func (d Desired) sourceOf() func(Cluster) SourceStatus {
	declared := make(map[string]*Declaration, len(d.Clusters))
	for i := range d.Clusters {
		declared[d.Clusters[i].key()] = &d.Clusters[i]
	}
	return func(c Cluster) SourceStatus {
		if of := declared[keyOf(c)]; of != nil {
			return SourceStatus{Source: of.Source, Revision: of.Revision, Committed: d.committed(of)}
		}
		return d.sourceBefore(c)
	}
}

// sourceBefore returns the previous source of a cluster that is no longer declared.
func (d Desired) sourceBefore(cluster Cluster) SourceStatus {
	if d.Unread != nil {
		return SourceStatus{Error: oneLine(d.Unread)}
	}
	state, known := d.StateOf(cluster.DeclaredBy())
	switch {
	case d.Live:
		return SourceStatus{Revision: d.Revision}
	case known && state.Unread != nil:
		return SourceStatus{Error: oneLine(state.Unread)}
	case known:
		return SourceStatus{Revision: state.Revision, Committed: state.Committed,
			Kin: state.Name != cluster.DeclaredBy()}
	}
	return SourceStatus{}
}

// committed returns the commit time of the revision that declares a cluster, or zero if it is unknown.
func (d Desired) committed(declared *Declaration) time.Time {
	if state, known := d.State(declared.Source); known && state.Revision == declared.Revision {
		return state.Committed
	}
	return time.Time{}
}
