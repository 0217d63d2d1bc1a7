package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/quorate/clusters/backup/retention"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
)

func newBackupsPrune(std streams) *cobra.Command {
	var f readingFlags
	var p retention.Policy
	var dryRun bool
	c := &cobra.Command{
		Use:   "prune [NAMESPACE/]CLUSTER --from URL",
		Short: "Delete a cluster's backups that the retention rules do not keep",
		Long: fmt.Sprintf(`Prune deletes the backups that are not kept by --last, --hourly, --daily or --weekly, at
most %d at a time. If you set one of these, the others default to zero.
The newest backup and the newest verified backup are always kept, and nothing is deleted unless
the newest backup has been verified, because it replaces the others. Backups from before a
restore are kept until there are --last verified backups after it, and the newest verified backup
among them is always kept. If nothing may be deleted, the exit code is 4.`, retention.MaxDeleted),
		Example: `  quorate backups prune prod/a --from s3://backups/etcd --last 7 --daily 7 --weekly 4 --dry-run`,
		Args:    cobra.ExactArgs(1),
	}
	f.add(c, helpFrom)
	f.timeout.add(c)
	parts := addParts(c, &p)
	c.Flags().DurationVar(&p.MinAge, "min-age", 24*time.Hour, "keep backups that are younger than this")
	c.Flags().BoolVar(&p.ByVerified, "by-verified", false,
		"base retention on the newest verified backup; newer unverified backups "+
			"are kept and do not count")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be deleted, without deleting it")
	c.RunE = func(c *cobra.Command, args []string) error {
		onlyGiven(parts)
		return pruneBackups(c.Context(), std, f, p, dryRun, args[0])
	}
	return c
}

// addParts adds the retention flags.
func addParts(c *cobra.Command, p *retention.Policy) (parts []*pflag.Flag) {
	for _, part := range []struct {
		to    *int
		name  string
		value int
		help  string
	}{
		{&p.Last, "last", 7, "number of newest backups to keep"},
		{&p.Hourly, "hourly", 24, "keep the newest backup of each of this many hours; hours without backups do not " +
			"count"},
		{&p.Daily, "daily", 7, "keep the newest backup of each of this many days (UTC); days without backups do not " +
			"count"},
		{&p.Weekly, "weekly", 4, "keep the newest backup of each of this many weeks; weeks without backups do not " +
			"count"},
	} {
		*part.to = part.value
		parts = append(parts, c.Flags().VarPF((*number)(part.to), part.name, "", part.help))
	}
	return parts
}

// onlyGiven keeps the flags that the user set, and sets the others to zero. If the user set none, it keeps the
// defaults.
func onlyGiven(parts []*pflag.Flag) {
	given := false
	for _, part := range parts {
		given = given || part.Changed
	}
	for _, part := range parts {
		if given && !part.Changed {
			*(part.Value.(*number)) = 0
		}
	}
}

func pruneBackups(
	ctx context.Context, std streams, f readingFlags, p retention.Policy, dryRun bool, argument string,
) error {
	of, err := clusterNamed(argument, nil)
	if err != nil {
		return err
	}
	if p.MinAge < 0 {
		return usageError{errors.New("--min-age must not be negative")}
	}
	ctx, cancel := f.timeout.within(ctx)
	defer cancel()
	bucket, listing, err := f.list(ctx, of)
	if err != nil {
		return err
	}
	defer bucket.Close()
	plan := retention.Prune(listing, p, time.Now())
	if len(listing.Backups) == 0 {
		plan.Why = f.none(of)
	}
	if plan.Why != "" {
		fmt.Fprintf(std.out, "%s  nothing is deleted: %s\n", of, plan.Why)
		return exit(exitBlocked)
	}
	if err := store.Confirm(ctx, bucket, plan.RestsOn); err != nil {
		return fmt.Errorf("prune the backups of %s: nothing is deleted, because the verified backup could not be "+
			"confirmed: %w",
			of, err)
	}
	for _, b := range plan.Waiting {
		why := "it has not been verified yet"
		if b.Differs {
			why = "a drill with it found different data in etcd"
		}
		fmt.Fprintf(std.out, "%s  %s is kept and does not count, because %s\n", of, b.ID(), why)
	}
	pruner := pruner{std, bucket, of, listing, plan.RestsOn, plan.Earlier, dryRun}
	if err := pruner.run(ctx, plan); err != nil {
		return fmt.Errorf("prune the backups of %s: %w", of, err)
	}
	return nil
}

// pruner executes a plan, or reports what it would delete.
type pruner struct {
	std    streams
	bucket store.Bucket
	of     store.Cluster
	// listed is the listing on which the plan is based.
	listed store.Listing
	// restsOn is the backup that justifies deleting the other backups.
	restsOn store.Backup
	// earlier contains the backups that justify deleting backups of other cluster IDs.
	earlier map[string]store.Backup
	dryRun  bool
}

func (p pruner) run(ctx context.Context, plan retention.Plan) error {
	done := "deleted"
	if p.dryRun {
		done = "would be deleted"
	}
	deleted := 0
	remove := func(backups []store.Backup) error {
		for _, b := range backups {
			if err := p.stands(ctx); err != nil {
				return err
			}
			gone, err := p.delete(ctx, b.ID(), func() error { return p.remove(ctx, b) })
			if err != nil {
				return err
			}
			if gone {
				fmt.Fprintf(p.std.out, "%s  %s %s (%s)\n", p.of, b.ID(), done, stateOf(b))
				deleted++
			}
		}
		return nil
	}
	if err := remove(plan.Delete); err != nil {
		return err
	}
	if err := remove(takeTurns(plan.Behind, len(plan.Delete)-deleted)); err != nil {
		return err
	}
	if err := p.discardAll(ctx, plan.Orphans, done); err != nil {
		return err
	}
	more := ""
	if len(plan.Delete) == retention.MaxDeleted {
		more = "; run the command again, because there may be more to delete"
	}
	_, err := fmt.Fprintf(p.std.out, "%s  %d of %d backups %s%s\n", p.of, deleted, len(p.listed.Backups),
		done, more)
	return err
}

// discardAll deletes data that no manifest names.
func (p pruner) discardAll(ctx context.Context, names []string, done string) error {
	for _, name := range names {
		if err := p.stands(ctx); err != nil {
			return err
		}
		gone, err := p.delete(ctx, name, func() error { return p.discard(ctx, name) })
		if err != nil {
			return err
		}
		if gone {
			fmt.Fprintf(p.std.out, "%s  data without a manifest %s: %s\n", p.of, done, name)
		}
	}
	return nil
}

// takeTurns returns up to most backups from a random position, because the first backups may be locked for a long time.
func takeTurns(behind []store.Backup, most int) []store.Backup {
	if len(behind) <= most {
		return behind
	}
	at := rand.IntN(len(behind))
	return slices.Concat(behind[at:], behind[:at])[:most]
}

// delete deletes one object. Locked and unreadable objects are kept and reported.
func (p pruner) delete(ctx context.Context, what string, delete func() error) (gone bool, err error) {
	switch err := delete(); {
	case err == nil, errors.Is(err, store.ErrNotFound): // another process may be pruning too
		return true, nil
	case errors.Is(err, store.ErrHeld), errors.Is(err, store.ErrManifest):
		fmt.Fprintf(p.std.err, "quorate: %s is kept: %s\n", what, printable.Line(err.Error()))
		return false, nil
	default:
		return false, errors.Join(err, ctx.Err())
	}
}

// stands checks again that the backup that justifies the deletions still exists and has not been marked as damaged.
func (p pruner) stands(ctx context.Context) error {
	if p.dryRun {
		return nil
	}
	if err := store.Confirm(ctx, p.bucket, p.restsOn); err != nil {
		return fmt.Errorf("the deletion was stopped, because %s no longer matches the verified backup: %w",
			p.restsOn.ID(), err)
	}
	return nil
}

func (p pruner) remove(ctx context.Context, b store.Backup) error {
	if b.ClusterID != p.restsOn.ClusterID {
		if err := store.Confirm(ctx, p.bucket, p.earlier[b.ClusterID]); err != nil {
			return fmt.Errorf("%w: it may be the last backup of its cluster, because the verified backup %s could not "+
				"be confirmed: %s", store.ErrHeld, p.earlier[b.ClusterID].ID(), err.Error())
		}
	}
	m, err := store.ReadManifest(ctx, p.bucket, b)
	switch {
	case err != nil:
		return err
	case p.dryRun:
		return p.listed.Removable(ctx, p.bucket, m)
	}
	return p.listed.Remove(ctx, p.bucket, m)
}

func (p pruner) discard(ctx context.Context, name string) error {
	named, err := store.IsNamed(ctx, p.bucket, name) // its manifest may have been stored after the listing
	switch {
	case err != nil || p.dryRun:
		return err
	case named:
		return fmt.Errorf("%w: a manifest now refers to this data", store.ErrHeld)
	}
	return p.bucket.Delete(ctx, name)
}
