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

// filled makes every database use its whole quota, with a NOSPACE alarm, and declares that passes end it.
func filled(w *world) {
	w.Declared.RecoversSpace, w.Declared.Quota = true, 600<<20
	for i := range w.Membership.Members {
		w.Membership.Members[i].DBSize = 600 << 20
	}
	w.Membership.Members[1].Alarms = []decide.AlarmKind{"NOSPACE"}
}

// room makes every database use less than 80 % of its quota, with a NOSPACE alarm.
func room(w *world) {
	filled(w)
	w.Declared.Quota = 800 << 20
}

const disarmedWithRoom = "only a declared recovery disarms NOSPACE of a current member"

var defragmentsFollower = acts(decide.Defragment{ID: 0xa1, Name: "a-1"})

var disarmsNoSpace = acts(decide.DisarmAlarm{ID: 0xa1, Kind: "NOSPACE"})

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
	{defragmentedWithCare, "defragments for a NOSPACE alarm although git does not declare it", also(filled, func(w *world) { w.Declared.RecoversSpace = false }), defragmentsFollower},
	{defragmentedWithCare, "defragments a full database without an alarm", also(filled, func(w *world) { w.Membership.Members[1].Alarms = nil }), defragmentsFollower},
	{defragmentedWithCare, "defragments for a NOSPACE alarm a database with room", room, defragmentsFollower},
	{disarmedWithRoom, "disarms although git does not declare it", also(room, func(w *world) { w.Declared.RecoversSpace = false }), disarmsNoSpace},
	{disarmedWithRoom, "disarms although a database is full", also(room, func(w *world) { w.Membership.Members[2].DBSize = 640 << 20 }), disarmsNoSpace},
	{disarmedWithRoom, "disarms although a size is unknown", also(room, func(w *world) { w.Membership.Members[2].DBSize = 0 }), disarmsNoSpace},
	{disarmedWithRoom, "disarms although a member does not respond", also(room, silent(2)), disarmsNoSpace},
	{disarmedWithRoom, "disarms although a member has a smaller quota", also(room, func(w *world) { w.Replicas[2].PodVersion, w.Replicas[2].PodSpecHash = "3.6.16", "h0" }), disarmsNoSpace},
	{disarmedWithRoom, "disarms during a CORRUPT alarm", also(room, func(w *world) { w.Membership.Members[2].Alarms = []decide.AlarmKind{"CORRUPT"} }), disarmsNoSpace},
	{disarmedWithRoom, "disarms an alarm of an unknown kind", also(room, func(w *world) { w.Membership.Members[1].Alarms = []decide.AlarmKind{"NEW"} }), acts(decide.DisarmAlarm{ID: 0xa1, Kind: "NEW"})},
	{"actions target observed IDs", "defragments a member with a different name", fragmented, acts(decide.Defragment{ID: 0xa1, Name: "a-2"})},
}

var rightsAboutDefragmentation = []wrong{
	{"", "defragments a follower", fragmented, defragmentsFollower},
	{"", "defragments a follower to end an alarm", filled, defragmentsFollower},
	{"", "disarms an alarm once there is room", room, disarmsNoSpace},
	{"", "defragments on request", also(requested, func(w *world) {
		w.DefragmentationRequest = decide.DefragmentationRequest{Request: "now", Since: w.Now.Add(-time.Minute)}
	}), defragmentsFollower},
}
