package decide

import (
	"cmp"
	"fmt"
	"time"
)

// Drill is a backup that was restored for practice: etcd started with it, and held what was backed up.
type Drill struct {
	Job string `json:"job"`
	// Slot of the backup, and ClusterID of the cluster that it is of.
	Slot      time.Time `json:"slot"`
	ClusterID ID        `json:"clusterID,omitempty"`
	// EtcdVersion of the etcd that was started.
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// FinishedAt is when all of it was done.
	FinishedAt time.Time `json:"finishedAt"`
	// Seconds that it took, rounded up, and Bytes of the snapshot.
	Seconds int64 `json:"seconds,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Uncompared says why the data could not be compared; empty if they were, and are the same.
	Uncompared string `json:"uncompared,omitempty"`
}

// clockSkew is how far the clocks of machines may be apart.
const clockSkew = 5 * time.Minute

// YetToCome reports whether a time is of the future, however far the clocks of machines may be apart: a clock was wrong
// then, or is now.
func YetToCome(at, now time.Time) bool { return at.After(now.Add(clockSkew)) }

// CanHaveBeen reports whether the drill can be done by now. One of the future would count as the newest for as long
// as it takes, and hide those that fail until then.
func (d Drill) CanHaveBeen(now time.Time) bool { return !YetToCome(d.FinishedAt, now) }

// DrillFailure is a drill that failed.
type DrillFailure struct {
	Job string    `json:"job"`
	At  time.Time `json:"at"`
	// Message says why.
	Message string `json:"message,omitempty"`
}

// drillWarnings say what keeps backups from being restored for practice, which drill has failed since one was
// well, and that two drills in a row have not been.
func (b Backups) drillWarnings() []string {
	var warnings []string
	if b.DrillForeign != "" {
		warnings = append(warnings, "no backup is restored for practice: "+b.DrillForeign)
	}
	if f := b.DrillFailed; f != nil {
		warnings = append(warnings, fmt.Sprintf("no backup was restored for practice since Job %s failed: %s", f.Job,
			cmp.Or(f.Message, "it does not say why")))
	}
	switch {
	case b.DrillDue.IsZero() || b.Drill != nil && !b.Drill.FinishedAt.Before(b.DrillDue):
	case b.Drill == nil:
		warnings = append(warnings, fmt.Sprintf("no backup was ever restored for practice, and two drills were due "+
			"since, the first at %s", b.DrillDue.UTC().Format(time.RFC3339)))
	default:
		warnings = append(warnings, fmt.Sprintf("no backup was restored for practice since %s, and two drills were "+
			"due since, the first at %s", b.Drill.FinishedAt.UTC().Format(time.RFC3339),
			b.DrillDue.UTC().Format(time.RFC3339)))
	}
	return warnings
}
