package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"
)

// killed is a bucket whose client is killed before or after the nth write. Later requests have no effect.
type killed struct {
	Bucket
	left  int
	after bool
}

var errKilled = errors.New("killed")

func (k *killed) change(change func() error) error {
	k.left--
	if k.left > 0 {
		return change()
	}
	if k.left == 0 && k.after {
		_ = change()
	}
	return errKilled
}

func (k *killed) Create(ctx context.Context, name string, content io.Reader) error {
	return k.change(func() error { return k.Bucket.Create(ctx, name, content) })
}

func (k *killed) Replace(ctx context.Context, name string, content io.Reader) error {
	return k.change(func() error { return k.Bucket.Replace(ctx, name, content) })
}

func (k *killed) Delete(ctx context.Context, name string) error {
	return k.change(func() error { return k.Bucket.Delete(ctx, name) })
}

// TestKilledRecordingStaysConsistent kills a process at each write while it records a verification or drill result for
// a backup, or removes the backup. It checks that a manifest always has its data, that a damaged backup never counts as
// verified, that a verified backup stays verified unless it is found damaged, and that only verified backups count as
// drilled. The next attempt must lead to the same result as if no process had been killed.
func TestKilledRecordingStaysConsistent(t *testing.T) {
	verify := func(damage string) func(Bucket, Manifest) error {
		return func(b Bucket, m Manifest) error {
			v, err := BeginVerification(context.Background(), b, m)
			if err != nil {
				return err
			}
			v.Damage = damage
			return v.Record(context.Background(), b)
		}
	}
	drill := func(b Bucket, m Manifest) error {
		v, err := BeginVerification(context.Background(), b, m)
		if err != nil {
			return err
		}
		return Drill{Format: Format, Verification: v}.Record(context.Background(), b)
	}
	differ := func(b Bucket, m Manifest) error {
		v, err := BeginVerification(context.Background(), b, m)
		if err != nil {
			return err
		}
		return v.RecordDifference(context.Background(), b)
	}
	deeds := map[string]func(Bucket, Manifest) error{
		"verified": verify(""), "damaged": verify("it is"), "drilled": drill, "differing": differ, "removed": listAndRemove,
	}
	kills := 0
	for before, first := range deeds {
		for what, deed := range deeds {
			for _, after := range []bool{false, true} {
				for n, ended := 1, false; !ended && before != "removed"; n++ {
					name := fmt.Sprintf("%s, then %s, killed at %d (after: %t)", before, what, n, after)
					b, m := objects{bucket: memblob.OpenBucket(nil), prefix: "", code: gcerrors.Code}, manifest()
					was := stateAfter(t, name, b, m, first)
					err := deed(&killed{Bucket: b, left: n, after: after}, m)
					if before == "differing" && what == "verified" && errors.Is(err, ErrDiffered) {
						ended = true
						continue
					}
					ended = err == nil
					if !ended && !errors.Is(err, errKilled) {
						t.Fatalf("%s: %v", name, err)
					}
					if !ended {
						kills++
					}
					is, there := requireSound(t, name, b)
					if keeps := what == "verified" || what == "drilled"; keeps && was.Verified && was.Good() && (!there || !is.Verified || !is.Good()) {
						t.Errorf("%s: the verification is lost: %+v", name, is)
					}
					if there {
						if err := deed(b, m); err != nil {
							t.Errorf("%s, and again: %v", name, err)
						}
					}
					is, there = requireSound(t, name, b)
					if want := map[string]bool{
						"verified": is.Verified && is.Good(), "damaged": is.Damaged && !is.Verified && !is.Drilled, "drilled": is.Verified && is.Drilled && is.Good(),
						"differing": is.Differs && !is.Verified && !is.Drilled, "removed": !there,
					}; !want[what] || there == (what == "removed") {
						t.Errorf("%s: in the end it is %+v", name, is)
					}
				}
			}
		}
	}
	if kills < 60 {
		t.Errorf("only %d kills", kills)
	}
}

// stateAfter stores a backup, records a first result, and returns the resulting state of the backup.
func stateAfter(t *testing.T, name string, b Bucket, m Manifest, first func(Bucket, Manifest) error) Backup {
	t.Helper()
	if err := b.Create(t.Context(), m.DataPath(), strings.NewReader("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := first(b, m); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	is, _ := requireSound(t, name, b)
	return is
}

// requireSound returns the only backup, if there is one, and checks that its data exists.
func requireSound(t *testing.T, name string, b Bucket) (is Backup, there bool) {
	t.Helper()
	listing, err := List(t.Context(), b, Cluster{"ns", "a"})
	if err != nil || len(listing.Backups) > 1 {
		t.Fatalf("%s: %+v, %v", name, listing, err)
	}
	if len(listing.Backups) == 0 {
		return Backup{}, false
	}
	is = listing.Backups[0]
	m, err := ReadManifest(t.Context(), b, is)
	if err == nil {
		err = m.ConfirmData(t.Context(), b)
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if is.Damaged && is.Good() || is.Drilled && !is.Verified && is.Good() {
		t.Errorf("%s: %+v", name, is)
	}
	return is, true
}
