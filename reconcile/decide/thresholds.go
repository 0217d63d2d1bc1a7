package decide

import (
	"slices"
	"time"
)

// The durations, numbers and sizes that decisions depend on. Thresholds documents each of them, with the reason.
const (
	pendingPatience                  = 30 * time.Second
	startPatience                    = 10 * time.Second
	crashPatience                    = time.Minute
	patience                         = 2 * time.Minute
	longPatience                     = 30 * time.Minute
	strandedPatience                 = 10 * time.Minute
	crashLoopThreshold               = 4
	crashesWithoutData               = 2
	checkStopThreshold               = 2
	replacementThreshold             = 3
	replacementMemory                = 24 * time.Hour
	snapshotPatience                 = time.Minute
	joinPatience                     = 20 * time.Second
	refusalPatience                  = 20 * time.Second
	smallDatabase              int64 = 256 << 20
	undoneThreshold                  = 3
	undonePause                      = 10 * time.Minute
	delayThreshold                   = 5
	defragmentationLimit             = 6 * time.Minute
	defragmentationPause             = time.Hour
	failedDefragmentationPause       = 24 * time.Hour
	failedComparisonPause            = time.Hour
	noComparison                     = 24 * time.Hour
	noteAgain                        = 10 * time.Minute
	unrelated                        = 30 * time.Minute
	recheckStarting                  = 200 * time.Millisecond
	recheckSettling                  = 500 * time.Millisecond
	recheck                          = time.Second
	recheckDoubt                     = 10 * time.Second
)

// Threshold is a duration, a number of times, or a size that decisions depend on.
type Threshold struct {
	Name string
	// Exactly one of Length, Times and Bytes is set to the value.
	Length time.Duration
	Times  int
	Bytes  int64
	// About describes the limit and its reason.
	About string
}

// Thresholds lists all thresholds, except the threshold declared in git (spec.replaceAfter).
func Thresholds() []Threshold { return slices.Concat(patiences(), membershipChanges(), rechecks()) }

// patiences lists how long, how often or up to what size a condition must hold before an action.
func patiences() []Threshold {
	return []Threshold{
		{"Starting container", startPatience, 0, 0,
			"A container that has run for this long is treated as starting, not as crashing: " +
				"the kubelet waits 10 s before the first restart."},
		{"Pending pod", pendingPatience, 0, 0,
			"Every pod is pending until it has a node, its volumes and its image. " +
				"A pod that is pending for longer may have a problem."},
		{"Crash loop: crashes", 0, crashLoopThreshold, 0,
			"A member's data is discarded only after this many crashes: " +
				"by then, restarts would have fixed a temporary problem."},
		{"Crash loop: time", crashPatience, 0, 0,
			"A member's data is discarded only after its pod has also failed for this long. " +
				"With the kubelet's back-off of 10, 20 and 40 s, four crashes take longer anyway."},
		{"No data: crashes", 0, crashesWithoutData, 0,
			"etcd must have reported this many times that its data is missing: " +
				"the first time, the volume may have been mounted late."},
		{"Stopped by its own data check: crashes", 0, checkStopThreshold, 0,
			"A member must have stopped this many times because its data differs from a peer's: " +
				"the first time, that peer may be about to be removed."},
		{"Failing pod", patience, 0, 0,
			"Exited containers are restarted, and image pulls are retried: " +
				"Kubernetes recovers from most failures within this time."},
		{"Wait", longPatience, 0, 0,
			"A node may come back, a slow volume may be attached, or a large database may be loaded. " +
				"After this long, the Wait becomes a Block. " +
				"For a Job, the limit is its declared deadline plus two minutes, if that is longer."},
		{"Missing node", strandedPatience, 0, 0,
			"A node that registers again still has its volumes. If spec.replaceAfter is set, it applies instead."},
		{"Reverted action: number", 0, undoneThreshold, 0,
			"After an action has been needed this many times, it is treated as reverted, and other rules come " +
				"first if they are safe without the action. Otherwise, as for Stop or Recover, nothing else is " +
				"changed. If the action is Seal, members are not changed, because the record is being reverted."},
		{"Reverted action: time", undonePause, 0, 0, "The action is retried this long after the last " +
			"attempt. Pods that must not run are stopped in every pass."},
		{"Delayed repair", 0, delayThreshold, 0,
			"Once object changes have preceded the repair of a member this many times, the repair comes first: " +
				"a lost member is replaced even if an object keeps being reverted."},
		{"Defragmentation: limit", defragmentationLimit, 0, 0,
			"For this long after a defragmentation began, the member does not count as unresponsive. If the " +
				"attempt failed or its result is unknown, no member is defragmented during that time. " +
				"After five minutes without a response, the kubelet restarts it, which ends the defragmentation."},
		{"Defragmentation: pause", defragmentationPause, 0, 0,
			"If a member's database still has much unused space after a defragmentation, the member is not " +
				"defragmented again within this time, because each defragmentation makes it unavailable."},
		{"Defragmentation: pause after a failure", failedDefragmentationPause, 0, 0,
			"The cause, such as a full volume, is rarely fixed sooner. A new request does not wait."},
		{"Data comparison: pause after a failure", failedComparisonPause, 0, 0,
			"A failed comparison is repeated after this time, because hashing delays writes, and an immediate " +
				"retry rarely succeeds."},
		{"Data comparison: overdue", noComparison, 0, 0,
			"If the last comparison is older than twice the declared interval plus this time, a pass warns."},
		{"Wait recorded in the status", noteAgain, 0, 0,
			"The entry is updated once it is this old, not on every pass."},
		{"Two separate waits", unrelated, 0, 0,
			"Between two observations further apart than this, the member may have been healthy."},
	}
}

// membershipChanges lists the thresholds for members that join and leave.
func membershipChanges() []Threshold {
	return []Threshold{
		{"Replacements: number", 0, replacementThreshold, 0,
			"If a member was replaced this many times because it did not respond or crashed, its data is not the " +
				"cause."},
		{"Replacements: time", replacementMemory, 0, 0,
			"Replacements further apart than this are not counted together."},
		{"Unresponsive learner", snapshotPatience, 0, 0,
			"A learner is treated as unresponsive only after at least this long: " +
				"it loads the leader's data before it responds."},
		{"Joining together: database", 0, 0, smallDatabase,
			"The leader sends its database to each learner. " +
				"If no member's database is larger than this, two learners may receive it at the same time."},
		{"Joining together: time", joinPatience, 0, 0,
			"etcd rejects new members for five seconds after voters have lost contact with each other. " +
				"If etcd still rejects the second learner after this long, the first learner joins alone."},
		{"Rejected removal", refusalPatience, 0, 0,
			"etcd rejects removals for five seconds after voters have lost contact with each other; a leader that " +
				"does not notice that contact is restored keeps rejecting them for as long as it leads. " +
				"After this long, leadership is transferred, and the removal is requested from the new leader."},
	}
}

// rechecks lists how often to check for changes that are not announced by notifications.
func rechecks() []Threshold {
	return []Threshold{
		{"Recheck while members start, or a learner catches up", recheckStarting, 0, 0,
			"etcd does not send notifications of either."},
		{"Recheck while members are unhealthy", recheckSettling, 0, 0,
			"An election takes about a second with etcd's defaults."},
		{"Recheck while Kubernetes acts", recheck, 0, 0, "Changes to objects are also watched."},
		{"Recheck while members may hold different data", recheckDoubt, 0, 0,
			"Hashing scans the whole database and delays writes. If a member is stopped by its own check, the " +
				"kubelet increases the delay before each restart. During a CORRUPT alarm, etcd rejects writes " +
				"anyway, so members are checked more often."},
	}
}
