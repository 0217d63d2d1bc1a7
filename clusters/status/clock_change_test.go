package status

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/retention"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// weeks simulates eight weeks of a cluster's backups, all of which are late and some of which fail.
type weeks struct {
	*testing.T
	live   *v1alpha1.EtcdCluster
	chance *rand.Rand
	begin  time.Time
	// fires are the times at which the CronJob starts a Job, according to Kubernetes' library. missed is the first time
	// at which it does not start one.
	fires  []time.Time
	missed time.Time
	// ended contains the time at which each of these backups succeeded, or zero if it failed.
	ended []time.Time
	// kept is the current content of the store. all contains all backups that were ever stored.
	kept, all []store.Backup
	policy    retention.Policy
}

// TestBackupStaleAcrossClockChanges simulates eight weeks around each clock change. It checks that, at any time,
// BackupStale is true if and only if there is no backup for the newest scheduled time whose deadline has passed. Each
// scheduled time must have its own slot, and retention must keep the backups that it promises, based on all backups
// that were ever stored.
func TestBackupStaleAcrossClockChanges(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York"} {
		for _, begin := range []time.Time{time.Date(2026, 2, 16, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 5, 0, 0, 0, 0, time.UTC)} {
			for schedule, deadline := range map[string]string{"30 2 * * *": "1h", "30 1 * * *": "3h", "5 */3 * * *": "30m"} {
				t.Run(fmt.Sprint(zone, begin.Month(), schedule), func(t *testing.T) {
					w := newWeeks(t, zone, schedule, deadline, begin)
					w.play()
					w.stop()
				})
			}
		}
	}
}

func newWeeks(t *testing.T, zone, schedule, deadline string, begin time.Time) *weeks {
	t.Helper()
	w := &weeks{T: t, live: liveCluster(), chance: rand.New(rand.NewPCG(uint64(begin.Unix()), 0)), begin: begin}
	w.live.CreationTimestamp = metav1.NewTime(begin)
	w.live.Spec.Backup = &v1alpha1.BackupSpec{Schedule: schedule, TimeZone: zone, Deadline: v1alpha1.Duration(deadline)}
	w.policy = retention.Policy{Last: 7, Daily: 7, Weekly: 4, MinAge: 24 * time.Hour}
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	times, err := cron.ParseStandard(schedule)
	if err != nil {
		t.Fatal(err)
	}
	at := times.Next(begin.In(location))
	for ; at.Before(begin.AddDate(0, 0, 56)); at = times.Next(at) {
		w.fires = append(w.fires, at.UTC())
	}
	w.missed = at.UTC()
	return w
}

// limit returns the maximum time after its scheduled time at which a backup still succeeds on time.
func (w *weeks) limit() time.Duration {
	return objects.BackupDeadline(w.live.Spec.Backup) + decide.LateBackup
}

// play runs the Jobs one by one and checks the condition after each.
func (w *weeks) play() {
	slots := map[time.Time]bool{}
	for i, fire := range w.fires {
		started := fire.Add(time.Duration(w.chance.Int64N(int64(decide.LateBackup))))
		slot, is := backup.SlotOfJob(fmt.Sprintf("a-backup-%d", fire.Unix()/60), started)
		if !is || !slot.Equal(fire) || slots[slot] {
			w.Fatalf("the Job of %s, started at %s, is for %s", fire, started, slot)
		}
		slots[slot] = true
		ended := started.Add(time.Duration(w.chance.Int64N(int64(objects.BackupDeadline(w.live.Spec.Backup)))))
		if w.chance.IntN(10) == 0 {
			ended = time.Time{}
		} else {
			w.stored(slot, ended)
		}
		w.ended = append(w.ended, ended)
		w.look(fire, fire.Add(w.limit()).Add(-time.Second), fire.Add(w.limit()), fire.Add(w.limit()+time.Second))
		for at := fire; i+1 < len(w.fires) && at.Before(w.fires[i+1]); at = at.Add(3 * time.Hour) {
			w.look(at)
		}
	}
}

// stop makes all further backups fail, which must be detected once the first failed backup is overdue.
func (w *weeks) stop() {
	missed := w.missed
	w.fires, w.ended = append(w.fires, missed), append(w.ended, time.Time{})
	w.look(missed, missed.Add(w.limit()), missed.Add(w.limit()+time.Second))
	if !w.stale(missed.Add(w.limit() + time.Second)) {
		w.Errorf("none since %s, and it is not stale", missed)
	}
}

// look compares the condition with the expected condition at each of the given times.
func (w *weeks) look(times ...time.Time) {
	w.Helper()
	for _, now := range times {
		if got, want := w.stale(now), w.overdue(now); got != want {
			w.Fatalf("stale at %s: %t, want %t", now, got, want)
		}
	}
}

// stale returns whether the condition in the status is true.
func (w *weeks) stale(now time.Time) bool {
	s := decide.State{Now: now}
	s.Declared.Lifecycle, s.Record.ClusterID = decide.Running, 0xc1
	for i := len(w.ended) - 1; i >= 0 && s.Backups.Last == nil; i-- {
		if w.succeeded(i, now) {
			s.Backups.Last = of(w.fires[i])
		}
	}
	var status v1alpha1.EtcdClusterStatus
	s.Backups.Due, s.Backups.Overdue = Overdue(w.live, w.live, s)
	setBackupConditions(&status, w.live, s)
	return meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionBackupStale)
}

// overdue returns whether the condition should be true.
func (w *weeks) overdue(now time.Time) bool {
	over := now.Add(-w.limit())
	if !w.begin.Before(over) {
		return false
	}
	for i := len(w.ended) - 1; i >= 0 && !w.succeeded(i, now); i-- {
		if w.fires[i].Before(over) {
			return true
		}
	}
	return !slices.ContainsFunc(w.ended, func(ended time.Time) bool { return !ended.IsZero() && !ended.After(now) })
}

// succeeded reports whether backup i had succeeded by now.
func (w *weeks) succeeded(i int, now time.Time) bool {
	return !w.ended[i].IsZero() && !w.ended[i].After(now)
}

// stored adds a backup, which is usually verified, and prunes.
func (w *weeks) stored(slot, now time.Time) {
	w.Helper()
	b := store.Backup{Cluster: store.Cluster{Namespace: "ns", Name: "a"}, ClusterID: "00000000000000c1", Slot: slot, Verified: w.chance.IntN(5) > 0}
	w.kept, w.all = append(w.kept, b), append(w.all, b)
	plan := retention.Prune(store.Listing{Backups: w.kept}, w.policy, now)
	w.kept = slices.DeleteFunc(w.kept, func(b store.Backup) bool { return slices.Contains(plan.Delete, b) })
	promised := w.promised(now)
	for _, b := range promised {
		if !slices.Contains(w.kept, b) {
			w.Fatalf("at %s, the backup of %s is gone", now, b.Slot)
		}
	}
	if b.Verified && len(w.kept) > len(promised) && len(plan.Delete) < retention.MaxDeleted {
		w.Fatalf("at %s, %d backups exist, but %d are promised", now, len(w.kept), len(promised))
	}
}

// promised returns the backups that must exist. Once the newest backup is verified, no other backups may exist. They
// are, of all backups that were ever stored, the newest ones, the newest of each day and week, the young ones, and the
// newest verified one.
func (w *weeks) promised(now time.Time) (promised []store.Backup) {
	days, weeks := map[string]bool{}, map[string]bool{}
	verified := false
	for i := len(w.all) - 1; i >= 0 && (len(weeks) < w.policy.Weekly || !verified || i >= len(w.all)-100); i-- {
		b := w.all[i]
		year, number := b.Slot.ISOWeek()
		day, week := b.Slot.Format(time.DateOnly), fmt.Sprint(year, number)
		newestOfDay := !days[day] && len(days) < w.policy.Daily
		newestOfWeek := !weeks[week] && len(weeks) < w.policy.Weekly
		if i >= len(w.all)-w.policy.Last || newestOfDay || newestOfWeek || now.Sub(b.Slot) < w.policy.MinAge || b.Verified && !verified {
			promised = append(promised, b)
		}
		if newestOfDay {
			days[day] = true
		}
		if newestOfWeek {
			weeks[week] = true
		}
		verified = verified || b.Verified
	}
	return promised
}
