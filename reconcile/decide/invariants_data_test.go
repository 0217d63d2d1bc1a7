package decide_test

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// hashes sets the members' hashes at one point, in order; zero means unknown. a-1 has a CORRUPT alarm.
func hashes(sums ...uint32) func(*world) {
	return func(w *world) {
		for i, sum := range sums {
			if sum > 0 {
				w.Membership.Members[i].Hash = decide.Hash{Revision: 120, CompactRevision: 100, Sum: sum}
			}
		}
		w.Membership.Members[1].Alarms = []decide.AlarmKind{"CORRUPT"}
	}
}

// stopped makes one of three members stop because of its check, and sets the hashes.
func stopped(n int, sums ...uint32) func(*world) {
	return func(w *world) {
		hashes(sums...)(w)
		w.Membership.Members[1].Alarms = nil
		silent(n)(w)
		w.Replicas[n].Pod, w.Replicas[n].PodStoppedByCheck = decide.PodFailing, true
	}
}

func remove(n int, name string) decision {
	return acts(decide.RemoveMember{ID: memberID(n), Name: name})
}

func learner(n int) func(*world) { return func(w *world) { w.Membership.Members[n].Learner = true } }

func leads(n int) func(*world) {
	return func(w *world) { w.each(func(m *decide.Member) { m.Leader = m.ID == memberID(n) }) }
}

func otherPoint(n int, revision, compacted int64) func(*world) {
	return func(w *world) {
		w.Membership.Members[n].Hash.Revision, w.Membership.Members[n].Hash.CompactRevision = revision, compacted
	}
}

var wrongsAboutData = []wrong{
	{"a majority decides which data is right", "only an alarm", hashes(0, 0, 0), remove(1, "a-1")},
	{"a majority decides which data is right", "removes a member of the majority", hashes(1, 2, 2), remove(2, "a-2")},
	{"a majority decides which data is right", "no majority", hashes(1, 2, 3), remove(2, "a-2")},
	{"a majority decides which data is right", "one of two members", also(hashes(1, 2, 0), func(w *world) { w.Membership.Members = w.Membership.Members[:2] }), remove(1, "a-1")},
	{"a majority decides which data is right", "two differ, the third is unknown", hashes(2, 1, 0), remove(1, "a-1")},
	{"a majority decides which data is right", "the removed member's hash is unknown", hashes(2, 2, 0), remove(2, "a-2")},
	{"a majority decides which data is right", "hash at a different revision", also(hashes(2, 2, 1), otherPoint(2, 119, 100)), remove(2, "a-2")},
	{"a majority decides which data is right", "hash at a different compaction", also(hashes(2, 2, 1), otherPoint(2, 120, 99)), remove(2, "a-2")},
	{"a majority decides which data is right", "vote of a member not responding", also(hashes(2, 2, 1), silent(1)), remove(2, "a-2")},
	{"a majority decides which data is right", "votes of learners", also(hashes(2, 2, 1), learner(0), leads(2)), remove(2, "a-2")},
	{"a majority decides which data is right", "without an alarm", also(hashes(1, 2, 3), func(w *world) { w.Membership.Members[1].Alarms = nil }), remove(2, "a-2")},
	{"a majority decides which data is right", "an alarm of no member", func(w *world) { w.Membership.StaleAlarms = []decide.Alarm{{Kind: "CORRUPT"}} }, remove(2, "a-2")},
	{"a majority decides which data is right", "scales down", also(hashes(1, 2, 3), func(w *world) { w.Declared.Replicas = 1 }), remove(2, "a-2")},
	{"a majority decides which data is right", "a member not responding, no majority", also(hashes(2, 1, 0), silent(2)), remove(2, "a-2")},
	{"a majority decides which data is right", "stopped itself, one of four others differs", also(stopped(2, 2, 2, 0), func(w *world) {
		for n, sum := range []uint32{1, 2} {
			m := w.newMember(3 + n)
			m.Hash = decide.Hash{Revision: 120, CompactRevision: 100, Sum: sum}
			w.Membership.Members = append(w.Membership.Members, m)
		}
	}), remove(2, "a-2")},
	{"a majority decides which data is right", "stopped itself, the others differ", stopped(2, 1, 2, 0), remove(2, "a-2")},
	{"a majority decides which data is right", "stopped itself, one hash is unknown", stopped(2, 1, 0, 0), remove(2, "a-2")},
	{"a majority decides which data is right", "restarts a member while in doubt", also(hashes(1, 2, 2), rolling), acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"a majority decides which data is right", "transfers leadership to the minority", also(hashes(2, 1, 2), leads(0)), acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"a majority decides which data is right", "copies from the minority", also(hashes(1, 2, 2), leads(0)), acts(decide.AddLearner{Ordinal: 3})},
	{"a majority decides which data is right", "copies from a member of unknown hash", also(hashes(0, 2, 2), leads(0)), acts(decide.AddLearner{Ordinal: 3})},
	{"a majority decides which data is right", "promotes a copy of the minority", also(hashes(1, 2, 0), leads(0), learner(2)), acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"a majority decides which data is right", "disarms although hashes differ", hashes(2, 2, 1), acts(decide.DisarmAlarm{ID: 0xa1, Kind: "CORRUPT"})},
	{"a majority decides which data is right", "disarms although one hash is unknown", hashes(2, 2, 0), acts(decide.DisarmAlarm{ID: 0xa1, Kind: "CORRUPT"})},
	{"a majority decides which data is right", "disarms although a member is not responding", also(hashes(2, 2, 2), silent(2)), acts(decide.DisarmAlarm{ID: 0xa1, Kind: "CORRUPT"})},
	{"a majority decides which data is right", "disarms the alarm of a removed member", func(w *world) { w.Membership.StaleAlarms = []decide.Alarm{{ID: 0xd1, Kind: "CORRUPT"}} }, acts(decide.DisarmAlarm{ID: 0xd1, Kind: "CORRUPT"})},
	{"a majority decides which data is right", "disarms the only member's alarm", also(hashes(2, 2, 2), func(w *world) {
		w.Membership.Members = w.Membership.Members[:1]
		w.Membership.Members[0].Alarms = []decide.AlarmKind{"CORRUPT"}
	}), acts(decide.DisarmAlarm{ID: 0xa0, Kind: "CORRUPT"})},
	{"actions target observed IDs", "disarms an alarm that is not raised", hashes(2, 2, 2), acts(decide.DisarmAlarm{ID: 0xa2, Kind: "CORRUPT"})},
	{disarmedWithRoom, "disarms NOSPACE of a listed member", func(w *world) { w.Membership.Members[1].Alarms = []decide.AlarmKind{"NOSPACE"} }, acts(decide.DisarmAlarm{ID: 0xa1, Kind: "NOSPACE"})},
}

var rightsAboutData = []wrong{
	{"", "removes an outvoted member", hashes(2, 1, 2), remove(1, "a-1")},
	{"", "removes the outvoted member, not the alarmed", also(hashes(1, 2, 2), leads(1)), remove(0, "a-0")},
	{"", "removes a member stopped by its check", also(stopped(2, 2, 2, 0), func(w *world) { w.Replicas[2].PodCrashes, w.Replicas[2].PodSince = 2, w.Now.Add(-time.Minute) }), remove(2, "a-2")},
	{"", "removes a member whose claim was deleted", also(hashes(1, 2, 3), func(w *world) { w.Replicas[2].VolumeTerminating = true }), remove(2, "a-2")},
	{"", "removes a member without a volume", also(hashes(1, 2, 0), silent(2), func(w *world) { w.Replicas[2].VolumeUID, w.Replicas[2].Pod = "", decide.PodPending }), remove(2, "a-2")},
	{"", "removes a crashing member, a majority agrees", also(hashes(2, 2, 0), down(2, 4, time.Minute)), remove(2, "a-2")},
	{"", "removes a learner", also(hashes(1, 2, 3), learner(2)), remove(2, "a-2")},
	{"", "transfers leadership to the majority", also(hashes(1, 2, 2), leads(0)), acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"", "copies from the majority", also(hashes(2, 2, 1), leads(0), func(w *world) { w.Declared.Replicas = 4 }), acts(decide.AddLearner{Ordinal: 3})},
	{"", "disarms a refuted alarm", hashes(2, 2, 2), acts(decide.DisarmAlarm{ID: 0xa1, Kind: "CORRUPT"})},
	{"", "disarms a removed member's alarm, one left", also(hashes(2, 2, 2), func(w *world) {
		w.Membership.Members = w.Membership.Members[:1]
		w.Membership.StaleAlarms = []decide.Alarm{{ID: 0xd1, Kind: "CORRUPT"}}
	}), acts(decide.DisarmAlarm{ID: 0xd1, Kind: "CORRUPT"})},
}
