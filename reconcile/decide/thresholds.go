package decide

import "time"

// How long, and how often, before something is done or said. Each is documented by Thresholds, with why it is what it is.
const (
	pendingPatience      = 30 * time.Second
	startPatience        = 10 * time.Second
	crashPatience        = time.Minute
	patience             = 2 * time.Minute
	longPatience         = 30 * time.Minute
	strandedPatience     = 10 * time.Minute
	crashLoopThreshold   = 4
	crashesWithoutData   = 2
	checkStopThreshold   = 2
	replacementThreshold = 3
	replacementMemory    = 24 * time.Hour
	noteAgain            = 10 * time.Minute
	unrelated            = 30 * time.Minute
	recheckStarting      = 200 * time.Millisecond
	recheckSettling      = 500 * time.Millisecond
	recheck              = time.Second
	recheckStopped       = 10 * time.Second
)

// Threshold is a length of time, or a number of times, that decisions depend on.
type Threshold struct {
	Name string
	// Length, or else Times, is what it is.
	Length time.Duration
	Times  int
	// About says what it bounds, and why so.
	About string
}

// Thresholds lists all of them. What git declares (spec.replaceAfter) is not among them.
func Thresholds() []Threshold {
	return []Threshold{
		{"A container that starts", startPatience, 0,
			"So long it must have run to count as one that starts: the kubelet waits 10 s before it starts a container again for the first time."},
		{"A pod that is pending", pendingPatience, 0, "Every pod is pending for a while, until it has a node, its volumes and its image; after so long, something may be the matter."},
		{"A crash loop, times", 0, crashLoopThreshold, "So often a container must have crashed before its data are given up: what a restart cures is over by then."},
		{"A crash loop, time", crashPatience, 0, "So long it must have failed besides. With the kubelet's pauses of 10, 20 and 40 s, four crashes take longer."},
		{"No data, times", 0, crashesWithoutData, "So often etcd must have said itself that its data are not there: the first time, its volume may have been mounted late."},
		{"Stopped by its own check, times", 0, checkStopThreshold, "So often a member must have stopped because a peer's data differ: the first time, that peer may be on its way out."},
		{"A pod that fails", patience, 0, "Containers that exit are started again, and images that cannot be had may be had later: Kubernetes gets over most of it by itself in this time."},
		{"A wait", longPatience, 0, "A node that is down may be up again, a slow volume attached, a large database read; after so long, a person is told by a Block."},
		{"A node that is gone", strandedPatience, 0, "One that is registered again has its volumes still. Where spec.replaceAfter is given, that counts instead."},
		{"Replacements, times", 0, replacementThreshold, "A member that was replaced so often is not replaced again for its silence or its crashes: what is wrong is not its data."},
		{"Replacements, time", replacementMemory, 0, "So long a replacement is counted with the next one."},
		{"A wait that is written down", noteAgain, 0, "So old the note of a wait in the status may get before a pass writes it again."},
		{"Two waits", unrelated, 0, "Between two sightings that are further apart, a member may have been well all the time, so they are not one wait."},
		{"Asked again while members start, or a learner catches up", recheckStarting, 0, "Nobody tells when it has."},
		{"Asked again while members are not well", recheckSettling, 0, "An election takes about a second, by etcd's defaults."},
		{"Asked again for what Kubernetes does", recheck, 0, "Changes of objects are watched besides."},
		{"Asked again while a member stops itself", recheckStopped, 0, "A hash costs a scan of the whole database, and the pod is started ever more slowly."},
	}
}
