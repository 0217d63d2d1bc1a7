package decide

import (
	"cmp"
	"fmt"
	"time"
)

// Drill is a successful drill: etcd started from the restored backup and had the data that was backed up.
type Drill struct {
	Job string `json:"job"`
	// Slot is the slot of the backup, and ClusterID the ID of the cluster that was backed up.
	Slot      time.Time `json:"slot"`
	ClusterID ID        `json:"clusterID,omitempty"`
	// EtcdVersion is the version of the started etcd.
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// FinishedAt is when the drill ended.
	FinishedAt time.Time `json:"finishedAt"`
	// Seconds is the duration, rounded up, and Bytes the size of the snapshot.
	Seconds int64 `json:"seconds,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Uncompared is why the data could not be compared, or empty if it was compared and is the same.
	Uncompared string `json:"uncompared,omitempty"`
}

// clockSkew is the maximum assumed difference between the clocks of machines.
const clockSkew = 5 * time.Minute

// YetToCome reports whether a time is in the future by more than the clock skew: a clock was wrong then, or is wrong
// now.
func YetToCome(at, now time.Time) bool { return at.After(now.Add(clockSkew)) }

// CanHaveBeen reports whether the drill can already have ended. A drill from the future would count as the newest drill
// until then, and hide failures.
func (d Drill) CanHaveBeen(now time.Time) bool { return !YetToCome(d.FinishedAt, now) }

// DrillFailure is a drill that failed.
type DrillFailure struct {
	Job string    `json:"job"`
	At  time.Time `json:"at"`
	// Message is why the drill failed.
	Message string `json:"message,omitempty"`
}

// drillWarnings returns what prevents drills, which drill has failed since the last success, and whether two
// consecutive drills were not successful.
func (b Backups) drillWarnings() []string {
	var warnings []string
	if b.DrillForeign != "" {
		warnings = append(warnings, "no drills are run: "+b.DrillForeign)
	}
	if f := b.DrillFailed; f != nil {
		warnings = append(warnings, fmt.Sprintf("no drill has succeeded since Job %s failed: %s", f.Job,
			cmp.Or(f.Message, "no reason reported")))
	}
	switch {
	case b.DrillDue.IsZero() || b.Drill != nil && !b.Drill.FinishedAt.Before(b.DrillDue):
	case b.Drill == nil:
		warnings = append(warnings, fmt.Sprintf("no drill has ever succeeded, although two were due, the first "+
			"at %s", b.DrillDue.UTC().Format(time.RFC3339)))
	default:
		warnings = append(warnings, fmt.Sprintf("no drill has succeeded since %s, although two were due after "+
			"that, the first at %s", b.Drill.FinishedAt.UTC().Format(time.RFC3339),
			b.DrillDue.UTC().Format(time.RFC3339)))
	}
	return warnings
}
