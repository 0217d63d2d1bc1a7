package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"quorate.dev/quorate/reconcile"
)

// withoutRewound refuses the revisions that do not descend from what was applied before: git was rewound, or its history was rewritten. What they
// declare is left out as if they could not be read, so everything stays as last applied. Where it cannot be told, that is a warning.
func withoutRewound(ctx context.Context, desired reconcile.Desired, owned inventory) reconcile.Desired {
	declarations := slices.Clone(desired.Clusters)
	refused := map[string]bool{}
	for i := range declarations {
		d := &declarations[i]
		before := lastRevision(owned, *d)
		if before == "" || before == d.Revision || refused[d.Revision] {
			continue
		}
		switch follows, err := d.Follows(ctx, before); {
		case err != nil:
			d.Warnings = append(slices.Clone(d.Warnings), fmt.Sprintf("whether %s descends from %s, which was applied last, is not known: %v", d.Revision, before, err))
		case !follows:
			refused[d.Revision] = true
			desired.Unread = errors.Join(desired.Unread, rewound(d.Revision, before))
		}
	}
	desired.Clusters = slices.DeleteFunc(declarations, func(d reconcile.Declaration) bool { return refused[d.Revision] })
	return desired
}

func rewound(revision, before string) error {
	return fmt.Errorf("%s is refused: it does not descend from %s, which was applied last; git was rewound, or its history rewritten: "+
		"push a commit on top of that one, or run once with --allow-rewind", revision, before)
}

// lastRevision is the revision that a cluster was last declared by; empty if there is none, or nobody asks.
func lastRevision(owned inventory, d reconcile.Declaration) string {
	custom := owned.of(key{d.Cluster.Namespace, d.Cluster.Name}).custom
	if custom == nil || d.Follows == nil {
		return ""
	}
	return custom.Status.DeclaredRevision
}
