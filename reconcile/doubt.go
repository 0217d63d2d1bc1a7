package reconcile

import (
	"errors"
	"slices"
	"time"
)

const (
	// doubtPatience is how long the clusters of other sources wait for a source in doubt. It is longer than the usual
	// interval between two reads, because another process may have applied a newer revision.
	doubtPatience = 30 * time.Second
	// readPatience is how long a loop waits for sources that it has never read. If many sources hang, the last of them
	// may fail much later.
	readPatience = 2 * time.Minute
)

// doubt records which sources are in doubt after a pass. In the returned value, it marks as unreadable the sources that
// have been in doubt for too long and, in a loop, the sources whose first read takes too long. The pass has already
// treated them as unreadable: it has kept the last applied state of their clusters, and withheld removals and ownership
// changes.
func (in *feed) doubt(d Desired) Desired {
	if in.asking = d.asks(in.desired); !in.asking {
		in.doubted = time.Time{}
	} else if in.doubted.IsZero() {
		in.doubted = time.Now()
	}
	in.late = in.declared != nil && time.Since(in.begun) >= readPatience
	in.inDoubt, d.Sources = sourceNames{}, slices.Clone(d.Sources)
	for i := range d.Sources {
		p := &d.Sources[i]
		in.inDoubt[p.Name] = p.asks(in.desired)
		late := errors.Is(p.Unread, ErrReading) && in.late
		switch {
		case p.Unread == nil:
			delete(in.doubts, p.Name)
		case in.inDoubt[p.Name] && in.doubts[p.Name].IsZero():
			in.doubts[p.Name], late = time.Now(), false
		case in.inDoubt[p.Name]:
			late = time.Since(in.doubts[p.Name]) >= doubtPatience
		}
		if late {
			p.Unread = errors.New(oneLine(p.Unread) + "; until the source is read, its clusters keep the last " +
				"applied state")
		}
	}
	return d
}

// skip determines which clusters a pass must not process. Runs other than loops do not wait for sources that have been
// in doubt for too long, but still skip clusters whose declarations are unknown, because they process each cluster only
// until it is up to date. Loops heal all clusters: if every pass has found some source in doubt for too long, only the
// clusters of the sources in doubt are skipped.
func (in *feed) skip(d Desired, clusters []Cluster) {
	loops := in.declared != nil
	in.waits, in.skipped, in.probes = false, map[string]bool{}, map[string]string{}
	switch {
	case loops && in.asking && (!in.desired.reading() || in.late) && time.Since(in.doubted) >= doubtPatience:
		for _, c := range clusters {
			if p, known := d.StateOf(c.DeclaredBy()); known && p.asks(in.desired) {
				in.skipped[keyOf(c)] = true
			}
		}
		in.ready = func(cluster string) bool { return !in.skipped[cluster] }
	case d.reading() || !loops && in.asking && !in.unseen:
		free := map[string]bool{}
		for _, cluster := range d.Ready() {
			free[cluster] = true
		}
		in.waits, in.ready = true, func(cluster string) bool { return free[cluster] }
	default:
		in.ready = func(string) bool { return true }
	}
}

// asks reports whether, after a pass, any source has been read but its ancestry is not known yet. read is the desired
// state before the pass.
func (d Desired) asks(read Desired) bool {
	return slices.ContainsFunc(d.Sources, func(p SourceState) bool { return p.asks(read) })
}

// asks reports whether the source has been read, but its ancestry is not known yet.
func (p SourceState) asks(read Desired) bool {
	was, _ := read.State(p.Name)
	return errors.Is(p.Unread, ErrReading) && !errors.Is(was.Unread, ErrReading)
}
