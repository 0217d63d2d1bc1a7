package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// withoutRewound refuses the sources whose revision does not descend from what was applied of them
// before: git was rewound, or its history was rewritten. What they declare is left out as if they
// could not be read, so everything of theirs stays as last applied. Where it cannot be told, that
// is a warning; but if the source must be signed, it is refused. As long as it is being looked for,
// the source counts as one that is being read.
func withoutRewound(ctx context.Context, desired reconcile.Desired, owned inventory) reconcile.Desired {
	for _, place := range desired.Sources {
		if place.Follows == nil || place.Unread != nil {
			continue
		}
		doubts, refused := followsAll(ctx, place, appliedBefore(owned, desired, place))
		if refused != nil {
			desired = desired.Refused(place.Name, refused)
		}
		desired.Warnings = append(slices.Clip(desired.Warnings), doubts...)
	}
	return desired
}

// followsAll asks whether the revision of a place follows each of those before. It returns what is
// not known, and an error if it is refused.
func followsAll(ctx context.Context, place reconcile.Place, before []string) (doubts []string, refused error) {
	for _, revision := range before {
		follows, err := place.Follows(ctx, revision)
		switch {
		case errors.Is(err, reconcile.ErrReading):
			return nil, err
		case err != nil && place.Signed:
			return nil, fmt.Errorf("%s of %s is refused: whether it descends from %s, which was applied last, is not known, and only what is signed counts: %w: "+
				"give it the whole history, or run once with --allow-non-fast-forward", place.Revision, place.Name, revision, err)
		case err != nil:
			doubts = append(doubts, fmt.Sprintf("whether %s of %s descends from %s, which was applied last, is not known: %v", place.Revision, place.Name, revision, err))
		case !follows:
			return nil, fmt.Errorf("%s of %s is refused: it does not descend from %s, which was applied last; git was rewound, its history rewritten, or another branch or repository read: "+
				"push a commit on top of that one, or run once with --allow-non-fast-forward", place.Revision, place.Name, revision)
		}
	}
	return doubts, nil
}

// appliedBefore lists the revisions of a place that were applied last, in order: usually one, which
// all of its clusters have in their status, whether it declares them still or not. That of the
// place itself is not among them.
func appliedBefore(owned inventory, desired reconcile.Desired, place reconcile.Place) []string {
	revisions := map[string]bool{}
	for k, p := range owned.managed() {
		revision := cmp.Or(p.custom.Status.SourceRevision, p.custom.Status.DeclaredRevision)
		// Earlier versions have written down the revisions of several sources at once. Whose is
		// which cannot be known.
		if commitAt.MatchString(revision) && revision != place.Revision && place.Namespaces.Allow(k.namespace) && isOf(p.custom, k, desired, place) {
			revisions[revision] = true
		}
	}
	return slices.Sorted(maps.Keys(revisions))
}

// commitAt is a revision that names one commit: a directory has none, and anybody who may write a
// status may write anything.
var commitAt = regexp.MustCompile(`^\S*sha1:[0-9a-f]+$`)

// isOf reports whether a cluster was declared by a place before: it says so, or it is declared
// there now and was by none that this run reads, which is then taken for the same one under another
// name.
func isOf(custom *v1alpha1.EtcdCluster, k key, desired reconcile.Desired, place reconcile.Place) bool {
	source := custom.Status.DeclaredSource
	if source == place.Name {
		return true
	}
	if _, another := desired.Place(source); another {
		return false
	}
	return slices.ContainsFunc(desired.Clusters, func(d reconcile.Declaration) bool {
		return d.Source == place.Name && d.Cluster.Namespace == k.namespace && d.Cluster.Name == k.name
	})
}
