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

// Place is one source, as of one revision.
type Place struct {
	// Name tells it from others: the location, and the path there after ",path=" if it has one.
	Name string
	// Label is what reports call it: as it was given.
	Label string
	// Revision that was read, empty if none was; and its signer, where signatures are verified.
	Revision, Signer string
	// Committed is when that was committed, as it says itself; zero if that is not known.
	Committed time.Time
	// Unread says why it could not be read, or was refused: nothing is known about what it
	// declares. It is nil if it was read.
	Unread error
	// At returns when it was last read, or when that last failed. It is nil before that.
	At func() time.Time
	// Follows reports whether the revision is another one, or descends from it. An error means that
	// this cannot be told; if it is ErrReading, not yet, and if it is ErrGone, what was read is not what the source
	// says any more. It is nil where it does not matter.
	Follows func(ctx context.Context, revision string) (bool, error)
	// Namespaces are those in which it may declare clusters.
	Namespaces Namespaces
	// Unlisted: of some of these namespaces it is not known what is there.
	Unlisted bool
	// Refuses says what it may not ask of the pods of a cluster.
	Refuses Policy
	// Signed: what is read must be signed. A revision is refused then where it cannot be told
	// whether it follows another.
	Signed bool
}

// Namespaces are those in which clusters may be declared: all if there are none.
type Namespaces []string

// Allow reports whether clusters may be declared in a namespace.
func (n Namespaces) Allow(namespace string) bool {
	return len(n) == 0 || slices.Contains(n, namespace)
}

// Policy says what a declaration may not ask of pods, each thing as a problem. If it is nil,
// everything may be asked for.
type Policy func(spec v1alpha1.EtcdClusterSpec) []string

// Refusals are what the policy says against a declaration.
func (p Policy) Refusals(spec v1alpha1.EtcdClusterSpec) []string {
	if p == nil {
		return nil
	}
	return p(spec)
}

// Location is the name of a source without its path.
func Location(source string) string {
	source, _, _ = strings.Cut(source, ",")
	return source
}

// SameLocation reports whether two names of sources differ by no more than what follows the
// location.
func SameLocation(a, b string) bool { return Location(a) == Location(b) }

// Summarize sets the revision and the signer of all places together.
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

// SourcesRead says of each of several sources at which revision it was read. One alone needs no
// name.
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

// fetches say of each source whether it was read. One that is still being read is left out.
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

// distinct are the words but for empty ones, each once, in their order.
func distinct(words []string) []string {
	var list []string
	for _, w := range words {
		if w != "" && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// Failure says what could not be read, and why; nil if everything was.
func (d Desired) Failure() error {
	errs := []error{d.Unread}
	for _, p := range d.Sources {
		errs = append(errs, p.Unread)
	}
	return errors.Join(errs...)
}

// AnyRead reports whether a source was read, so that something is known of what is declared.
func (d Desired) AnyRead() bool {
	return d.Unread == nil && slices.ContainsFunc(d.Sources, func(p Place) bool { return p.Unread == nil })
}

// Refused is what is declared without the place of that name, as if it could not be read.
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

// Place returns the one of that name.
func (d Desired) Place(name string) (Place, bool) {
	i := slices.IndexFunc(d.Sources, func(p Place) bool { return p.Name == name })
	if i < 0 {
		return Place{}, false
	}
	return d.Sources[i], true
}

// PlaceOf returns the place of what a source declared before: the one of that name, or the only one
// if that is in the same location, or if it is not known which source it was.
func (d Desired) PlaceOf(source string) (Place, bool) {
	if p, ok := d.Place(source); ok {
		return p, true
	}
	if len(d.Sources) == 1 && (source == "" || SameLocation(source, d.Sources[0].Name)) {
		return d.Sources[0], true
	}
	return Place{}, false
}

// sourceOf returns a function that says where a cluster's declaration comes from. Of other sources than its own
// nothing is said in it.
func (d Desired) sourceOf() func(Cluster) SourceState {
	declared := make(map[string]*Declaration, len(d.Clusters))
	for i := range d.Clusters {
		declared[d.Clusters[i].key()] = &d.Clusters[i]
	}
	return func(c Cluster) SourceState {
		if of := declared[keyOf(c)]; of != nil {
			return SourceState{Source: of.Source, Revision: of.Revision, Committed: d.committed(of)}
		}
		return d.sourceBefore(c)
	}
}

// sourceBefore says where the declaration of a cluster came from that none declares now.
func (d Desired) sourceBefore(cluster Cluster) SourceState {
	if d.Unread != nil {
		return SourceState{Error: oneLine(d.Unread)}
	}
	place, known := d.PlaceOf(cluster.DeclaredBy())
	switch {
	case d.Live:
		return SourceState{Revision: d.Revision}
	case known && place.Unread != nil:
		return SourceState{Error: oneLine(place.Unread)}
	case known:
		return SourceState{Revision: place.Revision, Committed: place.Committed,
			Kin: place.Name != cluster.DeclaredBy()}
	}
	return SourceState{}
}

// committed is when the revision was committed that declares a cluster; zero if that is not known.
func (d Desired) committed(declared *Declaration) time.Time {
	if place, known := d.Place(declared.Source); known && place.Revision == declared.Revision {
		return place.Committed
	}
	return time.Time{}
}
