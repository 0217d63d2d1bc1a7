package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/retention"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
)

// changing is a bucket that intercepts deletions.
type changing struct {
	store.Bucket
	remove func(name string, remove func() error) error
}

func (c changing) Delete(ctx context.Context, name string) error {
	return c.remove(name, func() error { return c.Bucket.Delete(ctx, name) })
}

// pruned stores verified backups of the last few days, and prunes them through the bucket that in returns.
func pruned(t *testing.T, in func(store.Bucket) store.Bucket) (store.Bucket, ran, error) {
	t.Helper()
	r := newRestores(t)
	for days := range 4 {
		r.stored(store.SlotID(time.Now().AddDate(0, 0, -days-1)))
	}
	bucket, err := store.Location{Directory: r.store}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range listed(t, bucket).Backups {
		m, err := store.ReadManifest(t.Context(), bucket, b)
		if err == nil {
			var v store.Verification
			if v, err = store.BeginVerification(t.Context(), bucket, m); err == nil {
				err = v.Record(t.Context(), bucket)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := prune(t, in(bucket), time.Now())
	return bucket, got, err
}

func listed(t *testing.T, b store.Bucket) store.Listing {
	t.Helper()
	listing, err := store.List(t.Context(), b, store.Cluster{Namespace: "ns", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return listing
}

// prune prunes the bucket, keeping only the newest backup.
func prune(t *testing.T, b store.Bucket, now time.Time) (ran, error) {
	t.Helper()
	var out, stderr bytes.Buffer
	listing := listed(t, b)
	plan := retention.Prune(listing, retention.Policy{Last: 1}, now)
	if plan.Why != "" {
		t.Fatal(plan.Why)
	}
	err := pruner{streams{out: &out, err: &stderr}, b, store.Cluster{Namespace: "ns", Name: "a"}, listing, plan.RestsOn, plan.Earlier, false}.run(t.Context(), plan)
	return ran{out: out.String(), err: stderr.String()}, err
}

// TestPruneContinuesPastLockedBackup checks that a locked backup is kept and reported, and does not prevent the
// deletion of other backups.
func TestPruneContinuesPastLockedBackup(t *testing.T) {
	t.Parallel()
	held := ""
	bucket, got, err := pruned(t, func(b store.Bucket) store.Bucket {
		return changing{b, func(name string, remove func() error) error {
			if held == "" || held == name {
				held = name
				return fmt.Errorf("delete %s: %w: it is locked", name, store.ErrHeld)
			}
			return remove()
		}}
	})
	if err != nil || !strings.Contains(got.err, " is kept: delete "+held) || !strings.Contains(got.err, "it is locked") || !strings.Contains(got.out, "2 of 4 backups deleted") {
		t.Errorf("%+v, %v", got, err)
	}
	left := listed(t, bucket).Backups
	if len(left) != 2 {
		t.Errorf("%+v", left)
	}
	for _, b := range left {
		if _, err := store.ReadUseful(t.Context(), bucket, b); err != nil {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// noteFound records that a backup was verified or, if damage is set, found damaged.
func noteFound(t *testing.T, in store.Bucket, of store.Backup, damage string) {
	t.Helper()
	m, err := store.ReadManifest(t.Context(), in, of)
	if err == nil {
		var v store.Verification
		if v, err = store.BeginVerification(t.Context(), in, m); err == nil {
			v.Damage = damage
			err = v.Record(t.Context(), in)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPruneStopsOnceNewestBackupIsDamaged checks that deletion stops as soon as the backup that justifies it is found
// to be damaged.
func TestPruneStopsOnceNewestBackupIsDamaged(t *testing.T) {
	found := false
	bucket, got, err := pruned(t, func(b store.Bucket) store.Bucket {
		return changing{b, func(_ string, remove func() error) error {
			if newest, _ := listed(t, b).Newest(); !found {
				found = true
				noteFound(t, b, newest, "it is")
			}
			return remove()
		}}
	})
	if left := listed(t, bucket).Backups; err == nil || !strings.Contains(err.Error(), "the deletion was stopped") || len(left) != 3 {
		t.Errorf("%+v, %v: %+v", got, err, left)
	}
}

// TestPruneKeepsDataWithNewManifest checks that data counts as a backup if its manifest was stored after the store was
// listed.
func TestPruneKeepsDataWithNewManifest(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	for _, days := range []int{-1, -30} {
		r.stored(store.SlotID(time.Now().AddDate(0, 0, days)))
	}
	bucket, err := store.Location{Directory: r.store}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	was := listed(t, bucket)
	newest, _ := was.Newest()
	noteFound(t, bucket, newest, "")
	was = listed(t, bucket)
	was.Backups = slices.DeleteFunc(was.Backups, func(b store.Backup) bool { return b != newest && !b.Verified })
	plan := retention.Prune(was, retention.Policy{Last: 1}, time.Now())
	if len(plan.Orphans) != 1 || len(plan.Delete) > 0 {
		t.Fatalf("%+v", plan)
	}
	var out, stderr bytes.Buffer
	p := pruner{streams{out: &out, err: &stderr}, bucket, store.Cluster{Namespace: "ns", Name: "a"}, was, plan.RestsOn, plan.Earlier, false}
	if err := p.run(t.Context(), plan); err != nil || !strings.Contains(stderr.String(), "a manifest now refers to "+
		"this data") {
		t.Errorf("%v: %s%s", err, &out, &stderr)
	}
	for _, b := range listed(t, bucket).Backups {
		if _, err := store.ReadUseful(t.Context(), bucket, b); err != nil {
			t.Errorf("%s: %v", b.ID(), err)
		}
	}
}

// TestPruneKeepsOrphanedDataOnceNewestIsDamaged checks that data without a manifest is kept once the backup that
// justifies deletions is found to be damaged, because that data may be all that is left.
func TestPruneKeepsOrphanedDataOnceNewestIsDamaged(t *testing.T) {
	t.Parallel()
	bucket, _, err := pruned(t, func(b store.Bucket) store.Bucket { return b })
	if err != nil {
		t.Fatal(err)
	}
	was := listed(t, bucket)
	newest, _ := was.Newest()
	m, err := store.ReadManifest(t.Context(), bucket, newest)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for days := range 3 {
		m.Slot = newest.Slot.AddDate(0, 0, -days-30)
		m.Data = m.NewDataName()
		if err := bucket.Create(t.Context(), m.DataPath(), strings.NewReader("data")); err != nil {
			t.Fatal(err)
		}
		names = append(names, m.DataPath())
	}
	_, err = prune(t, changing{bucket, func(_ string, remove func() error) error {
		noteFound(t, bucket, newest, "it is")
		return remove()
	}}, time.Now())
	left := 0
	for _, name := range names {
		if _, err := bucket.Size(t.Context(), name); err == nil {
			left++
		}
	}
	if err == nil || !strings.Contains(err.Error(), "the deletion was stopped") || left != 2 {
		t.Errorf("%v: %d are left", err, left)
	}
}

// TestLockedBackupsDoNotUseUpDeletions checks that locked backups, no matter how many, do not count toward the maximum
// number of deletions.
func TestLockedBackupsDoNotUseUpDeletions(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	var first []store.Backup
	for days := range 4 {
		r.stored(store.SlotID(time.Now().AddDate(0, 0, -days-1)))
	}
	bucket, err := store.Location{Directory: r.store}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listing := listed(t, bucket)
	if newest, _ := listing.Newest(); true {
		noteFound(t, bucket, newest, "")
	}
	for _, b := range listing.Backups {
		if b.Slot.Before(time.Now().AddDate(0, 0, -2)) {
			first = append(first, b)
		}
	}
	held := first[0].ID()
	locked := changing{bucket, func(name string, remove func() error) error {
		if strings.Contains(name, held) {
			return store.ErrHeld
		}
		return remove()
	}}
	for range 2 { // only one backup can be deleted each time
		newest, _ := listing.Newest()
		plan := retention.Plan{Delete: first[:1], Behind: first[1:], RestsOn: newest}
		var out, stderr bytes.Buffer
		p := pruner{streams{out: &out, err: &stderr}, locked, store.Cluster{Namespace: "ns", Name: "a"}, listing, newest, nil, false}
		if err := p.run(t.Context(), plan); err != nil || !strings.Contains(out.String(), "  1 of ") {
			t.Errorf("%v: %s%s", err, &out, &stderr)
		}
		first = slices.DeleteFunc(first, func(b store.Backup) bool { return strings.Contains(out.String(), b.ID()+" deleted") })
		listing = listed(t, bucket)
	}
}

// TestKilledPruneKeepsNewestBackup checks that, if a prune is killed before or after any deletion, the newest backup
// still exists, all listed backups have their data, and the next prune continues. Data left without a manifest is
// deleted later.
func TestKilledPruneKeepsNewestBackup(t *testing.T) {
	t.Parallel()
	errKilled := errors.New("killed")
	kills := 0
	for _, after := range []bool{false, true} {
		for n, killed := 1, true; killed; n++ {
			killed = false
			deletions := 0
			bucket, _, err := pruned(t, func(b store.Bucket) store.Bucket {
				return changing{b, func(_ string, remove func() error) error {
					deletions++
					if deletions < n {
						return remove()
					}
					killed = true
					if deletions == n && after {
						_ = remove()
					}
					return errKilled
				}}
			})
			if killed != errors.Is(err, errKilled) {
				t.Fatalf("%d: %v", n, err)
			}
			if killed {
				kills++
			}
			requireWhole(t, bucket)
			if _, err := prune(t, bucket, time.Now()); err != nil {
				t.Errorf("%d: %v", n, err)
			}
			requireWhole(t, bucket)
			if _, err := prune(t, bucket, time.Now().AddDate(0, 0, 9)); err != nil {
				t.Errorf("%d: %v", n, err)
			}
			if listing := listed(t, bucket); len(listing.Backups) != 1 || len(listing.Data) != 1 {
				t.Errorf("%d: %+v", n, listing)
			}
		}
	}
	if kills < 16 {
		t.Errorf("it was killed %d times", kills)
	}
}

// TestPruneKeepsLockedAndNewerFormatBackups checks that a prune does not delete locked backups, or backups whose
// encoding only a newer version may support. A dry run reports the same. Keeping these backups is not a failure, and
// they do not count as damaged.
func TestPruneKeepsLockedAndNewerFormatBackups(t *testing.T) {
	later := time.Now().UTC().Add(time.Hour).Format(time.RFC3339)
	for line, why := range map[string]string{
		`"encryption": "age-v2",`:         "a newer version may",
		`"lockedUntil": "` + later + `",`: "the backup is locked until " + later,
	} {
		t.Run(line, func(t *testing.T) { pruneLeaves(t, line, why) })
	}
}

func pruneLeaves(t *testing.T, line, why string) {
	r := newRestores(t)
	var all []string
	for days := range 3 {
		all = append(all, store.SlotID(time.Now().AddDate(0, 0, -days-1)))
		r.stored(all[days])
	}
	if code := execute(t.Context(), []string{"backups", "verify", "ns/a", "--from=file://" + r.store}, streams{out: io.Discard, err: io.Discard}); code != exitOK {
		t.Fatal(code)
	}
	manifests, err := filepath.Glob(r.store + "/ns/a/*/" + all[2] + ".json")
	if err != nil || len(manifests) != 1 {
		t.Fatal(manifests, err)
	}
	text, err := os.ReadFile(manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	newer := regexp.MustCompile(`("format".*)`).ReplaceAll(text, []byte(`$1 `+line))
	if err := os.WriteFile(manifests[0], newer, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, how := range [][]string{{"--dry-run"}, nil, {"--dry-run"}, nil} {
		var out, stderr bytes.Buffer
		code := execute(t.Context(), append([]string{"backups", "prune", "ns/a", "--from=file://" + r.store, "--last=1", "--min-age=1h"}, how...),
			streams{out: &out, err: &stderr})
		if code != exitOK || strings.Contains(out.String(), all[2]) || !strings.Contains(stderr.String(), all[2]+" is kept: ") || !strings.Contains(stderr.String(), why) {
			t.Errorf("%d %s%s", code, out.String(), stderr.String())
		}
	}
	if left, err := os.ReadFile(manifests[0]); err != nil || !bytes.Equal(left, newer) {
		t.Errorf("%v %s", err, left)
	}
	if damaged, err := filepath.Glob(r.store + "/ns/a/*/*.damaged.json"); err != nil || len(damaged) > 0 {
		t.Errorf("%v %v", damaged, err)
	}
}

// requireWhole requires that the newest backup is verified and recent, and that each backup has its data.
func requireWhole(t *testing.T, bucket store.Bucket) {
	t.Helper()
	listing := listed(t, bucket)
	if newest, some := listing.Newest(); !some || !newest.Verified || time.Since(newest.Slot) > 25*time.Hour {
		t.Errorf("the newest is %+v", newest)
	}
	for _, b := range listing.Backups {
		if _, err := store.ReadUseful(t.Context(), bucket, b); err != nil {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// TestFutureBackupIsIgnored checks that a backup taken by a machine whose clock was a day ahead is not used as the
// newest backup.
func TestFutureBackupIsIgnored(t *testing.T) {
	r := newRestores(t)
	now, future := store.SlotID(time.Now().Add(-time.Hour)), store.SlotID(time.Now().Add(24*time.Hour))
	r.stored(now)
	r.stored(future)
	for _, command := range []string{"verify", "fetch"} {
		var out, stderr bytes.Buffer
		args := []string{"backups", command, "ns/a", "--from=file://" + r.store}
		if command == "fetch" {
			args = append(args, "--to="+t.TempDir()+"/a.db")
		}
		code := execute(t.Context(), args, streams{out: &out, err: &stderr})
		if code != exitOK || !strings.Contains(out.String(), "  "+now+map[string]string{"verify": " is ", "fetch": " was written to "}[command]) || !strings.Contains(stderr.String(), future+" is newer than "+now+" but was skipped (its time is in the future)") {
			t.Errorf("%s: %d\n%s%s", command, code, out.String(), stderr.String())
		}
	}
	if got := r.restore(); got.code != exitOK || store.SlotID(r.told().Slot) != now {
		t.Errorf("%+v: %+v", got, r.told())
	}
}

// TestOlderBackupWithLaterRevisionIsReported checks that using the newest backup causes a warning if an older backup
// has a later revision, because that backup may have been taken on a machine whose clock was behind.
func TestOlderBackupWithLaterRevisionIsReported(t *testing.T) {
	t.Parallel()
	bucket, err := store.Location{Directory: t.TempDir()}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC().Truncate(time.Second)
	stored := func(age time.Duration, id string, revision int64) string {
		m := store.Manifest{Format: store.Format, Namespace: "ns", Cluster: "a", ClusterID: id, Slot: at.Add(-age), Bytes: 1, SHA256: strings.Repeat("ab", 32)}
		m.Snapshot = store.Snapshot{Bytes: 1, SHA256: m.SHA256, Facts: snapshot.Facts{Revision: revision}}
		m.Data = m.NewDataName()
		err := bucket.Create(t.Context(), m.DataPath(), strings.NewReader("x"))
		if err == nil {
			_, err = m.Commit(t.Context(), bucket)
		}
		if err != nil {
			t.Fatal(err)
		}
		return store.SlotID(m.Slot)
	}
	const ours, theirs = "00000000000000aa", "00000000000000bb"
	stored(72*time.Hour, ours, 10)
	late, newest := stored(24*time.Hour, ours, 300), stored(time.Hour, ours, 200)
	stored(25*time.Hour, ours, 250)
	stored(48*time.Hour, theirs, 900)
	var stderr bytes.Buffer
	m, err := newestOf(t.Context(), streams{err: &stderr}, bucket, listed(t, bucket))
	if err != nil || store.SlotID(m.Slot) != newest {
		t.Fatalf("%+v %v", m, err)
	}
	if said := stderr.String(); strings.Count(said, "higher "+
		"revision") != 1 || !strings.Contains(said, late+" has a higher revision than "+newest+" (300 and 200)") {
		t.Error(said)
	}
	newest = stored(time.Minute, ours, 300)
	stderr.Reset()
	m, err = newestOf(t.Context(), streams{err: &stderr}, bucket, listed(t, bucket))
	if err != nil || store.SlotID(m.Slot) != newest || strings.Contains(stderr.String(), "revision") {
		t.Errorf("%+v %v\n%s", m, err, &stderr)
	}
}

// TestPruneKeepsLastReadableBackupOfEarlierCluster checks that backups of another cluster ID are deleted only if a newer
// verified backup of that ID still exists. Its mark alone is not enough, because someone may have deleted its data.
func TestPruneKeepsLastReadableBackupOfEarlierCluster(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	bucket, err := store.Location{Directory: t.TempDir()}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(id string, days int, verified bool) store.Manifest {
		m := store.Manifest{
			Format: store.Format, Namespace: "ns", Cluster: "a", ClusterID: id, Slot: now.AddDate(0, 0, -days).Truncate(time.Second),
			Bytes: 3, SHA256: strings.Repeat("ab", 32),
			Snapshot: store.Snapshot{Bytes: 3, SHA256: strings.Repeat("cd", 32), Facts: snapshot.Facts{Revision: 7}},
		}
		m.Data = m.NewDataName()
		_, failed := m.Commit(t.Context(), bucket)
		v, unknown := store.BeginVerification(t.Context(), bucket, m)
		if err := errors.Join(bucket.Create(t.Context(), m.DataPath(), strings.NewReader("abc")), failed, unknown); err != nil {
			t.Fatal(err)
		}
		if verified {
			if err := v.Record(t.Context(), bucket); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	const present, earlier, unverified = "00000000000000aa", "00000000000000bb", "00000000000000cc"
	add(present, 1, true)
	lost, sound := add(earlier, 9, true), add(earlier, 10, true)
	add(unverified, 11, false)
	add(unverified, 12, false)
	if err := bucket.Delete(t.Context(), lost.DataPath()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := prune(t, bucket, now)
		if err != nil || !strings.Contains(got.err, sound.Backup().ID()+" is kept: ") || !strings.Contains(got.err, "could not be confirmed") {
			t.Errorf("%v %+v", err, got)
		}
		if left := len(listed(t, bucket).Backups); left != 5 {
			t.Errorf("%d of 5 backups are left: %s", left, got.out)
		}
	}
	if err := bucket.Create(t.Context(), lost.DataPath(), strings.NewReader("abc")); err != nil {
		t.Fatal(err)
	}
	if got, err := prune(t, bucket, now); err != nil || !strings.Contains(got.out, sound.Backup().ID()+" deleted") || len(listed(t, bucket).Backups) != 4 {
		t.Errorf("%v %+v", err, got)
	}
}
