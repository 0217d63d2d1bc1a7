package decide

import (
	"slices"
	"time"
)

// Durations, numbers and sizes that decisions depend on. Thresholds documents each with its reason.
const (
	pendingPatience            = 30 * time.Second
	startPatience              = 10 * time.Second
	crashPatience              = time.Minute
	patience                   = 2 * time.Minute
	longPatience               = 30 * time.Minute
	strandedPatience           = 10 * time.Minute
	crashLoopThreshold         = 4
	crashesWithoutData         = 2
	checkStopThreshold         = 2
	replacementThreshold       = 3
	replacementMemory          = 24 * time.Hour
	snapshotPatience           = time.Minute
	joinPatience               = 20 * time.Second
	refusalPatience            = 20 * time.Second
	smallDatabase        int64 = 256 << 20
	undoneThreshold            = 3
	undonePause                = 10 * time.Minute
	noteAgain                  = 10 * time.Minute
	unrelated                  = 30 * time.Minute
	recheckStarting            = 200 * time.Millisecond
	recheckSettling            = 500 * time.Millisecond
	recheck                    = time.Second
	recheckStopped             = 10 * time.Second
)

// Threshold is a duration, a number of times, or a size that decisions depend on.
type Threshold struct {
	Name string
	// Length, or else Times, or else Bytes, is its value.
	Length time.Duration
	Times  int
	Bytes  int64
	// About describes what it limits, and why.
	About string
}

// Thresholds lists all thresholds, except those declared in git (spec.replaceAfter).
func Thresholds() []Threshold { return slices.Concat(patiences(), membershipChanges(), rechecks()) }

// patiences lists what must happen, or for how long, before anything is done about it.
func patiences() []Threshold {
	return []Threshold{
		{"A container that starts", startPatience, 0, 0,
			"A container that has run this long counts as starting, not as crashing: " +
				"the kubelet waits 10 s before the first restart."},
		{"A pending pod", pendingPatience, 0, 0,
			"Every pod is pending until it has a node, its volumes and its image. " +
				"After this long, something may be wrong."},
		{"Crash loop: crashes", 0, crashLoopThreshold, 0,
			"A member's data is given up only after this many crashes: anything that a restart cures is over by then."},
		{"Crash loop: time", crashPatience, 0, 0,
			"And only after the pod has failed for this long. With the kubelet's pauses of 10, 20 and 40 s, four " +
				"crashes take longer anyway."},
		{"No data: crashes", 0, crashesWithoutData, 0,
			"etcd itself must have said this often that its data is not there: " +
				"the first time, the volume may have been mounted late."},
		{"Stopped by its own check: crashes", 0, checkStopThreshold, 0,
			"A member must have stopped this often because a peer's data differs: " +
				"the first time, that peer may be on its way out."},
		{"A failing pod", patience, 0, 0,
			"Containers that exit are restarted, and images that cannot be pulled now may be pulled later: " +
				"Kubernetes gets over most failures within this time."},
		{"A wait", longPatience, 0, 0,
			"A node may come back, a slow volume be attached, a large database be read. " +
				"After this long, a Block tells a person. For a Job it is the deadline that git declares, and " +
				"two minutes, where that is longer."},
		{"A missing node", strandedPatience, 0, 0,
			"A node that is registered again still has its volumes. spec.replaceAfter counts instead where it is set."},
		{"An action that is undone: number", 0, undoneThreshold, 0,
			"An action that was needed again this often in a row does not last: all other rules come before it."},
		{"An action that is undone: time", undonePause, 0, 0, "It is tried again this long after the last time."},
		{"A wait noted in the status", noteAgain, 0, 0, "The note is renewed once it is this old, not on every pass."},
		{"Two separate waits", unrelated, 0, 0,
			"Between two sightings further apart than this, the member may have been healthy all the time."},
	}
}

// membershipChanges lists the same for members that join and leave.
func membershipChanges() []Threshold {
	return []Threshold{
		{"Replacements: number", 0, replacementThreshold, 0,
			"After this many replacements of one member for silence or crashes, its data is not what is wrong."},
		{"Replacements: time", replacementMemory, 0, 0,
			"Replacements further apart than this are not counted together."},
		{"A learner: time", snapshotPatience, 0, 0,
			"A learner has at least this long before its silence counts: " +
				"it takes in what the leader has before it answers."},
		{"Joining together: database", 0, 0, smallDatabase,
			"The leader sends its database to each learner. Up to this size, as the largest member says, two " +
				"learners may be sent it at once."},
		{"Joining together: time", joinPatience, 0, 0,
			"etcd refuses a new member for five seconds after voters have lost sight of each other. " +
				"Once it has refused the second for this long, the first joins alone."},
		{"A removal that is refused", refusalPatience, 0, 0,
			"etcd refuses a removal for five seconds after voters have lost sight of each other, and a leader that " +
				"is wrong about that for as long as it leads. After this long, another voter leads, and is asked."},
	}
}

// rechecks lists how often to check things that send no notification.
func rechecks() []Threshold {
	return []Threshold{
		{"Recheck while members start, or a learner catches up", recheckStarting, 0, 0,
			"etcd sends no notice of either."},
		{"Recheck while members are unhealthy", recheckSettling, 0, 0,
			"An election takes about a second with etcd's defaults."},
		{"Recheck of what Kubernetes does", recheck, 0, 0, "Changes of objects are watched as well."},
		{"Recheck while a member stops itself", recheckStopped, 0, 0,
			"A hash scans the whole database, and the kubelet restarts the pod more and more slowly."},
	}
}
