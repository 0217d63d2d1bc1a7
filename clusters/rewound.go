package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/reconcile"
)

// withoutRewound rejects each source whose revision does not descend from the previously applied revision, because git
// was rewound or its history was rewritten. A rejected source is treated as unreadable, so its clusters are kept as
// last applied. Unknown ancestry only causes a warning, unless the source must be signed or no longer contains the
// applied revision; then the source is rejected. While its ancestry is being determined, a source counts as still being
// read.
func withoutRewound(ctx context.Context, desired reconcile.Desired, owned inventory.ByCluster) reconcile.Desired {
	for _, source := range desired.Sources {
		if source.Follows == nil || source.Unread != nil {
			continue
		}
		doubts, refused := followsAll(ctx, source, targets.AppliedBefore(owned, desired, source))
		if refused != nil {
			desired = desired.Refused(source.Name, refused)
		}
		desired.Warnings = append(slices.Clip(desired.Warnings), doubts...)
	}
	return desired
}

// followsAll checks whether the revision of a source descends from each of the revisions in before. It returns
// warnings about unknown ancestry, and an error if the revision is rejected.
func followsAll(ctx context.Context, source reconcile.SourceState, before []string) (doubts []string, refused error) {
	for _, revision := range before {
		follows, err := source.Follows(ctx, revision)
		switch {
		case errors.Is(err, reconcile.ErrReading):
			return nil, err
		case errors.Is(err, reconcile.ErrGone):
			return nil, fmt.Errorf("%s of %s is rejected: the source no longer contains this revision, so it is not "+
				"known whether "+
				"it descends from %s, which was applied last. The next pass reads the revision that replaced it",
				source.Revision, source.Name, revision)
		case err != nil && source.Signed:
			return nil, fmt.Errorf("%s of %s is rejected: it must be signed, and it is not known whether it "+
				"descends from %s, which was applied last: %w. Provide the full history, "+
				"or run once with --allow-non-fast-forward", source.Revision, source.Name, revision, err)
		case err != nil:
			doubts = append(doubts, fmt.Sprintf("cannot tell whether %s of %s descends from %s, which was applied "+
				"last: %v", source.Revision, source.Name, revision, err))
		case !follows:
			return nil, fmt.Errorf("%s of %s is rejected: it does not descend from %s, which was applied last. "+
				"Git was rewound, its history was rewritten, or a different branch or repository was read. Push a "+
				"commit on top of the applied commit, or run once with --allow-non-fast-forward",
				source.Revision, source.Name, revision)
		}
	}
	return doubts, nil
}
