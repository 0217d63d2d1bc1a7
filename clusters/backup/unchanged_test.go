package backup

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/reconcile/decide"
)

// TestConfirmUnchanged checks that only a cluster with the same ID and revision as the backup counts as unchanged.
func TestConfirmUnchanged(t *testing.T) {
	unreachable := errors.New("no quorum")
	for name, c := range map[string]struct {
		id, revision int64
		unknown      error
		unproven     string
		want         error
		message      string
	}{
		"same revision":     {id: 0xaa, revision: 12},
		"higher revision":   {id: 0xaa, revision: 15, want: ErrChanged, message: "it was at revision 12 and is now at 15. Stop its clients"},
		"lower revision":    {id: 0xaa, revision: 11, want: ErrChanged, message: "it was at revision 12 and is now at 11. Stop its clients"},
		"different cluster": {id: 0xbb, revision: 12, want: ErrChanged, message: "it was cluster aa and is now cluster bb"},
		"unknown revision":  {id: 0xaa, revision: 12, unknown: unreachable, want: unreachable, message: "cannot determine whether the cluster has changed"},
		"unproven":          {id: 0xaa, revision: 12, unproven: "a-1 does not respond", want: ErrUnproven, message: "this backup: a-1 does not respond"},
	} {
		from := sound(t)
		taken, err := Take(t.Context(), from, order(t))
		if err != nil {
			t.Fatal(err)
		}
		from.ID, from.Now, from.Unknown = decide.ID(c.id), c.revision, c.unknown
		of := result.Result{ClusterID: taken.Manifest.ClusterID, Revision: taken.Manifest.Snapshot.Revision, Unproven: c.unproven}
		err = ConfirmUnchanged(t.Context(), from, of, time.Millisecond)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.message) || errors.Is(err, ErrChanged) != errors.Is(c.want, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// electing is a cluster that has no leader at first.
type electing struct {
	*backuptest.Member
	asked int
}

func (e *electing) CurrentRevision(ctx context.Context) (decide.ID, int64, error) {
	if e.asked++; e.asked < 2 {
		return 0, 0, errors.New("no leader")
	}
	return e.Member.CurrentRevision(ctx)
}

// TestConfirmUnchangedWaitsForLeader checks that a cluster without a leader is asked again: a failed attempt would
// require another backup.
func TestConfirmUnchangedWaitsForLeader(t *testing.T) {
	from := sound(t)
	from.Now = 12
	if err := ConfirmUnchanged(t.Context(), &electing{Member: from}, result.Result{ClusterID: hexadecimal(from.ID), Revision: 12}, time.Minute); err != nil {
		t.Error(err)
	}
}

// TestOtherClusterIsNotBackedUp checks that a cluster with an unexpected ID is neither backed up nor looked up in the
// store.
func TestOtherClusterIsNotBackedUp(t *testing.T) {
	bucket := bucketIn(t, t.TempDir())
	stored(t, bucket, order(t))
	for id, want := range map[decide.ID]error{0: nil, 0xaa: nil, 0xbb: ErrOtherCluster} {
		o := order(t)
		o.ClusterID = id
		if _, err := Take(t.Context(), sound(t), o); !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "the cluster ID aa, not bb") {
			t.Errorf("take %x: %v", uint64(id), err)
		}
		if _, err := Find(t.Context(), sound(t), bucket, o); !errors.Is(err, want) {
			t.Errorf("find %x: %v", uint64(id), err)
		}
		if spooled, err := os.ReadDir(o.Spool); err != nil || want != nil && len(spooled) > 0 {
			t.Errorf("%x: %v, %v", uint64(id), spooled, err)
		}
	}
}
