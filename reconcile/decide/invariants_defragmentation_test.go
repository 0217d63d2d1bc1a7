package decide_test

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

const defragmentedWithCare = "a member is defragmented only while the others serve requests"

// fragmented makes most of the space in each database unused, and declares defragmentation.
func fragmented(w *world) {
	w.Declared.Defragmentation = decide.Defragmentation{MinFreePercent: 50, MinFree: 1 << 20}
	for i := range w.Membership.Members {
		w.Membership.Members[i].DBSize, w.Membership.Members[i].DBSizeInUse = 600<<20, 200<<20
	}
}

// requested requests the defragmentation of all members.
func requested(w *world) { w.Declared.Defragmentation.Request = "now" }

var defragmentsFollower = acts(decide.Defragment{ID: 0xa1, Name: "a-1"})

var wrongsAboutDefragmentation = []wrong{
	{defragmentedWithCare, "defragments the leader", fragmented, acts(decide.Defragment{ID: 0xa0, Name: "a-0"})},
	{defragmentedWithCare, "defragments while a member does not respond", also(fragmented, silent(2)), defragmentsFollower},
	{defragmentedWithCare, "defragments while a member is a learner", also(fragmented, func(w *world) { w.Membership.Members[2].Learner = true }), defragmentsFollower},
	{defragmentedWithCare, "defragments before a member is added", also(fragmented, func(w *world) { w.Declared.Replicas = 4 }), defragmentsFollower},
	{defragmentedWithCare, "defragments during a downgrade", also(fragmented, func(w *world) { w.Membership.Downgrade = "3.5" }), defragmentsFollower},
	{defragmentedWithCare, "defragments during a rollout", also(fragmented, func(w *world) { w.Declared.SpecHash = "h2" }), defragmentsFollower},
	{defragmentedWithCare, "defragments during a backup", also(fragmented, func(w *world) {
		w.Backups.Jobs = []decide.BackupJob{{Name: "a-backup-1", Phase: decide.JobRuns}}
	}), defragmentsFollower},
	{defragmentedWithCare, "defragments during a CORRUPT alarm", also(fragmented, func(w *world) { w.Membership.Members[2].Alarms = []decide.AlarmKind{"CORRUPT"} }), defragmentsFollower},
	{defragmentedWithCare, "defragments although defragmentation is not declared", also(fragmented, func(w *world) { w.Declared.Defragmentation = decide.Defragmentation{} }), defragmentsFollower},
	{defragmentedWithCare, "defragments although too little space is unused", also(fragmented, func(w *world) { w.Membership.Members[1].DBSizeInUse = 399 << 20 }), defragmentsFollower},
	{defragmentedWithCare, "defragments outside the window", also(fragmented, func(w *world) { w.WindowClosed = true }), defragmentsFollower},
	{defragmentedWithCare, "carries out a request twice", also(requested, func(w *world) {
		w.DefragmentationRequest = decide.DefragmentationRequest{Request: "now", Since: w.Now.Add(-time.Minute)}
		w.Membership.Members[1].Defragmented.At = w.Now
	}), defragmentsFollower},
	{"actions target observed IDs", "defragments a member with a different name", fragmented, acts(decide.Defragment{ID: 0xa1, Name: "a-2"})},
}

var rightsAboutDefragmentation = []wrong{
	{"", "defragments a follower", fragmented, defragmentsFollower},
	{"", "defragments on request", also(requested, func(w *world) {
		w.DefragmentationRequest = decide.DefragmentationRequest{Request: "now", Since: w.Now.Add(-time.Minute)}
	}), defragmentsFollower},
}
