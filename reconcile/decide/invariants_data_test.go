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
	{"a majority decides which data is right", "the alarm alone", hashes(0, 0, 0), remove(1, "a-1")},
	{"a majority decides which data is right", "it is of the majority", hashes(1, 2, 2), remove(2, "a-2")},
	{"a majority decides which data is right", "no majority", hashes(1, 2, 3), remove(2, "a-2")},
	{"a majority decides which data is right", "one of two", also(hashes(1, 2, 0), func(w *world) { w.Membership.Members = w.Membership.Members[:2] }), remove(1, "a-1")},
	{"a majority decides which data is right", "two and nobody knows of the third", hashes(2, 1, 0), remove(1, "a-1")},
	{"a majority decides which data is right", "its own is not known", hashes(2, 2, 0), remove(2, "a-2")},
	{"a majority decides which data is right", "another revision", also(hashes(2, 2, 1), otherPoint(2, 119, 100)), remove(2, "a-2")},
	{"a majority decides which data is right", "compacted otherwise", also(hashes(2, 2, 1), otherPoint(2, 120, 99)), remove(2, "a-2")},
	{"a majority decides which data is right", "a vote of one that is silent", also(hashes(2, 2, 1), silent(1)), remove(2, "a-2")},
	{"a majority decides which data is right", "votes of learners", also(hashes(2, 2, 1), learner(0), leads(2)), remove(2, "a-2")},
	{"a majority decides which data is right", "without an alarm", also(hashes(1, 2, 3), func(w *world) { w.Membership.Members[1].Alarms = nil }), remove(2, "a-2")},
	{"a majority decides which data is right", "an alarm of nobody", func(w *world) { w.Membership.StaleAlarms = []decide.Alarm{{Kind: "CORRUPT"}} }, remove(2, "a-2")},
	{"a majority decides which data is right", "scales down", also(hashes(1, 2, 3), func(w *world) { w.Declared.Replicas = 1 }), remove(2, "a-2")},
	{"a majority decides which data is right", "a silent one in doubt", also(hashes(2, 1, 0), silent(2)), remove(2, "a-2")},
	{"a majority decides which data is right", "stopped itself, and a majority of five stands with another against it", also(stopped(2, 2, 2, 0), func(w *world) {
		for n, sum := range []uint32{1, 2} {
			m := w.newMember(3 + n)
			m.Hash = decide.Hash{Revision: 120, CompactRevision: 100, Sum: sum}
			w.Membership.Members = append(w.Membership.Members, m)
		}
	}), remove(2, "a-2")},
	{"a majority decides which data is right", "stopped itself, the others differ", stopped(2, 1, 2, 0), remove(2, "a-2")},
	{"a majority decides which data is right", "stopped itself, of one nothing is known", stopped(2, 1, 0, 0), remove(2, "a-2")},
	{"a majority decides which data is right", "restarts one in doubt", also(hashes(1, 2, 2), rolling), acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"a majority decides which data is right", "hands over to the minority", also(hashes(2, 1, 2), leads(0)), acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"a majority decides which data is right", "copies from the minority", also(hashes(1, 2, 2), leads(0)), acts(decide.AddLearner{Ordinal: 3})},
	{"a majority decides which data is right", "copies from whom nobody knows", also(hashes(0, 2, 2), leads(0)), acts(decide.AddLearner{Ordinal: 3})},
	{"a majority decides which data is right", "gives a copy of the minority a vote", also(hashes(1, 2, 0), leads(0), learner(2)), acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"a majority decides which data is right", "disarms although they differ", hashes(2, 2, 1), acts(decide.DisarmAlarm{ID: 0xa1, Kind: "CORRUPT"})},
	{"a majority decides which data is right", "disarms although one is not known", hashes(2, 2, 0), acts(decide.DisarmAlarm{ID: 0xa1, Kind: "CORRUPT"})},
	{"a majority decides which data is right", "disarms although a member is not responding", also(hashes(2, 2, 2), silent(2)), acts(decide.DisarmAlarm{ID: 0xa1, Kind: "CORRUPT"})},
	{"a majority decides which data is right", "disarms for one that is gone", func(w *world) { w.Membership.StaleAlarms = []decide.Alarm{{ID: 0xd1, Kind: "CORRUPT"}} }, acts(decide.DisarmAlarm{ID: 0xd1, Kind: "CORRUPT"})},
	{"a majority decides which data is right", "disarms for the only one", also(hashes(2, 2, 2), func(w *world) {
		w.Membership.Members = w.Membership.Members[:1]
		w.Membership.Members[0].Alarms = []decide.AlarmKind{"CORRUPT"}
	}), acts(decide.DisarmAlarm{ID: 0xa0, Kind: "CORRUPT"})},
	{"actions target observed IDs", "disarms what nobody raised", hashes(2, 2, 2), acts(decide.DisarmAlarm{ID: 0xa2, Kind: "CORRUPT"})},
	{"actions target observed IDs", "disarms NOSPACE of one that is there", func(w *world) { w.Membership.Members[1].Alarms = []decide.AlarmKind{"NOSPACE"} }, acts(decide.DisarmAlarm{ID: 0xa1, Kind: "NOSPACE"})},
}

var rightsAboutData = []wrong{
	{"", "removes one that is outvoted", hashes(2, 1, 2), remove(1, "a-1")},
	{"", "removes one that is outvoted, and not the one that is blamed", also(hashes(1, 2, 2), leads(1)), remove(0, "a-0")},
	{"", "removes one that has stopped itself, and all others agree", also(stopped(2, 2, 2, 0), func(w *world) { w.Replicas[2].PodCrashes, w.Replicas[2].PodSince = 2, w.Now.Add(-time.Minute) }), remove(2, "a-2")},
	{"", "removes one whose claim somebody has deleted", also(hashes(1, 2, 3), func(w *world) { w.Replicas[2].VolumeTerminating = true }), remove(2, "a-2")},
	{"", "removes one of which nothing is left", also(hashes(1, 2, 0), silent(2), func(w *world) { w.Replicas[2].VolumeUID, w.Replicas[2].Pod = "", decide.PodPending }), remove(2, "a-2")},
	{"", "removes a silent one, and a majority holds the same", also(hashes(2, 2, 0), down(2, 4, time.Minute)), remove(2, "a-2")},
	{"", "removes a learner", also(hashes(1, 2, 3), learner(2)), remove(2, "a-2")},
	{"", "hands over to the majority", also(hashes(1, 2, 2), leads(0)), acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"", "copies from the majority", also(hashes(2, 2, 1), leads(0), func(w *world) { w.Declared.Replicas = 4 }), acts(decide.AddLearner{Ordinal: 3})},
	{"", "disarms what is refuted", hashes(2, 2, 2), acts(decide.DisarmAlarm{ID: 0xa1, Kind: "CORRUPT"})},
	{"", "disarms for one that is gone, from the only one left", also(hashes(2, 2, 2), func(w *world) {
		w.Membership.Members = w.Membership.Members[:1]
		w.Membership.StaleAlarms = []decide.Alarm{{ID: 0xd1, Kind: "CORRUPT"}}
	}), acts(decide.DisarmAlarm{ID: 0xd1, Kind: "CORRUPT"})},
}
