package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/visible"
)

// rereadFlags are the flags for reading stored backups again.
type rereadFlags struct {
	reading readingFlags
	again   backup.Again
	results resultFiles
}

func newBackupsReread(std streams) *cobra.Command {
	var f rereadFlags
	c := &cobra.Command{
		Use:   "reread [NAMESPACE/]CLUSTER --from URL",
		Short: "Read stored backups again, and record those that are no longer what was stored",
		Long: `Reread downloads what is stored of the backups that were not read for the longest time, and
holds it against the checksum that was taken when it was stored. It needs no key, and room for
nothing. What is not what was stored is recorded as damaged, and counts no more; so is a backup
whose manifest is not to be trusted. One that is deleted meanwhile is none. One may take half of
the time that is left while others are due.

If a backup is damaged, the exit code is 4, and 1 if one could not be read. With --result it is 0:
whoever reads that is told, and who has just stored a backup has not failed.`,
		Example: `  quorate backups reread prod/a --from s3://backups/etcd --after 168h --count 10`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c.Context(), std, args[0]) },
	}
	f.reading.add(c, helpFrom)
	c.Flags().DurationVar(&f.again.After, "after", 30*24*time.Hour, "read those that were not read for so long")
	f.again.Count = 1
	c.Flags().Var((*number)(&f.again.Count), "count", "read that many at most")
	f.again.MaxBytes = 16 << 30
	addBytes(c.Flags(), &f.again.MaxBytes, "max-bytes", "bytes that what is stored of a backup may have")
	f.results.add(c)
	f.reading.timeout.add(c)
	return c
}

func (f *rereadFlags) run(ctx context.Context, std streams, argument string) error {
	of, err := clusterNamed(argument, nil)
	if err != nil {
		return err
	}
	switch {
	case f.again.After < 0:
		return usageError{errors.New("--after is negative")}
	case f.again.Count < 1:
		return usageError{errors.New("--count: want 1 or more")}
	}
	if err := f.results.check("from", f.reading.from); err != nil {
		return err
	}
	f.results.begin()
	ctx, cancel := f.reading.timeout.within(ctx)
	defer cancel()
	f.again.Now = time.Now().UTC().Truncate(time.Second)
	found, listing, err := f.read(ctx, std, of)
	var usage usageError
	if errors.As(err, &usage) || err != nil && len(f.results) == 0 {
		return err
	}
	found.Unread = cmp.Or(err, found.Unread)
	if err := f.results.write(rereadResult(f.again.Now, found, listing).Encode); err != nil {
		return fmt.Errorf("tell what was read again of %s: %w", of, err)
	}
	return f.report(std, of, found)
}

func (f *rereadFlags) read(
	ctx context.Context, std streams, of store.Cluster,
) (backup.ReadAgain, store.Listing, error) {
	bucket, listing, err := f.reading.list(ctx, of)
	if err != nil {
		return backup.ReadAgain{}, store.Listing{}, err
	}
	defer bucket.Close()
	progress, done := bars(std.err)
	defer done()
	f.again.Progress = progress
	return f.again.Do(ctx, bucket, listing), listing, nil
}

func rereadResult(at time.Time, found backup.ReadAgain, listing store.Listing) result.Reread {
	r := result.Reread{
		At: at, Backups: int64(found.Good), Read: int64(len(found.Read)), Bytes: found.Bytes, Oldest: found.Oldest,
	}
	if found.Unread != nil {
		r.Unread = found.Unread.Error()
	}
	for _, b := range found.Damaged {
		r.Damaged = append(r.Damaged, result.BackupName(b.ID(), b.ClusterID))
	}
	for _, b := range listing.Until(at.Add(clockSkew)).Backups {
		if b.Damaged && !b.Suspect {
			r.Damaged = append(r.Damaged, result.BackupName(b.ID(), b.ClusterID))
		}
	}
	slices.Sort(r.Damaged)
	r.Damaged = slices.Compact(r.Damaged)
	slices.Reverse(r.Damaged)
	return r
}

// report prints the result, and returns the matching exit code.
func (f *rereadFlags) report(std streams, of store.Cluster, found backup.ReadAgain) error {
	for _, b := range found.Read {
		state := "is what was stored"
		if slices.Contains(found.Damaged, b) {
			state = "is damaged"
		}
		fmt.Fprintf(std.out, "%s  %s %s\n", of, b.ID(), state)
	}
	oldest := ""
	if !found.Oldest.IsZero() {
		oldest = "; all that are good were read since " + found.Oldest.Format(time.RFC3339)
	}
	if _, err := fmt.Fprintf(std.out, "%s  %d read again, %d damaged%s\n", of, len(found.Read), len(found.Damaged),
		oldest); err != nil {
		return err
	}
	if found.Unread != nil && len(f.results) > 0 {
		fmt.Fprintln(std.err, "quorate:", visible.Line(found.Unread.Error()))
	}
	switch {
	case len(f.results) > 0:
		return nil
	case len(found.Damaged) > 0:
		return exit(exitBlocked)
	}
	return found.Unread
}
