package decide

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// without removes members from etcd's list.
func without(ordinals ...int) func(*State) {
	return func(s *State) {
		s.Membership.Members = slices.DeleteFunc(s.Membership.Members, func(m Member) bool {
			ordinal, ours := s.OrdinalOf(m)
			return ours && slices.Contains(ordinals, ordinal)
		})
	}
}

func removed(n int, volume string) func(*State) {
	return func(s *State) {
		s.Record.Removed = append(s.Record.Removed, RemovedMember{Ordinal: n, VolumeUID: volume})
	}
}

// words returns a short form of a record.
func words(r Record) string {
	var list []string
	for _, m := range r.Members {
		word := fmt.Sprintf("%d:%s", m.Ordinal, m.Mode[:1])
		if m.Leaving {
			word += "!"
		}
		if m.Learner {
			word += " learner"
		}
		list = append(list, word)
	}
	for _, gone := range r.Removed {
		word := fmt.Sprintf("-%d(%s)", gone.Ordinal, gone.VolumeUID)
		if gone.Kept() {
			word += " of " + gone.LostCluster.String()
		}
		list = append(list, word)
	}
	for _, replaced := range r.Replaced {
		list = append(list, fmt.Sprintf("again %d", replaced.Ordinal))
	}
	return strings.Join(list, " ")
}

type recordCase struct {
	change func(*State)
	want   string
}

// checkRecord checks the short form of the record that a cluster of three members requires after a change.
func checkRecord(t *testing.T, cases map[string]recordCase) {
	t.Helper()
	for what, c := range cases {
		r := RequiredRecord(after(3, c.change), "")
		if got := words(r); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", what, got, c.want)
		}
		if len(r.Removed) == 0 && r.Removed != nil {
			t.Errorf("%s: Removed is an empty list, want nil", what)
		}
	}
}

// TestFollow checks how the record changes with etcd's list and the volumes.
func TestFollow(t *testing.T) {
	noID := func(s *State) { s.Record.ClusterID, s.ReportedClusterID = 0, 0 }
	founding := recordedAs(RecordedMember{Mode: Founding})
	leaving := func(s *State) { s.Record.Members[1].Leaving = true }
	noVolume := func(n int) func(*State) { return func(s *State) { s.Replicas[n].VolumeUID = "" } }
	volume := func(n int, uid string) func(*State) { return func(s *State) { s.Replicas[n].VolumeUID = uid } }
	token := func(n int, token string) func(*State) { return func(s *State) { s.Replicas[n].VolumeToken = token } }
	beyond := both(without(2), declared(2), func(s *State) { s.Record.Members = s.Record.Members[:2] })
	gap := both(without(1), gapOf(1))
	checkRecord(t, map[string]recordCase{
		"unchanged":                                    {nil, "0:S 1:S 2:S"},
		"member list unknown":                          {both(without(2), unlisted), "0:S 1:S 2:S"},
		"no cluster ID recorded":                       {both(without(2), noID), "0:S 1:S 2:S"},
		"no cluster ID anywhere":                       {both(without(2), noID, func(s *State) { s.Membership.ClusterID = 0 }), "0:S 1:S 2:S"},
		"list of a different cluster":                  {both(without(2), func(s *State) { s.Membership.ClusterID = 0xc2 }), "0:S 1:S 2:S"},
		"one member gone":                              {without(2), "0:S 1:S -2(v2) again 2"},
		"surplus member gone":                          {both(without(2), declared(2)), "0:S 1:S -2(v2)"},
		"initial member gone":                          {both(without(1), founding), "0:S 2:S -1(v1)"},
		"one member gone, volume gone":                 {both(without(1), noVolume(1)), "0:S 2:S -1(v1) again 1"},
		"one member gone, different volume":            {both(without(1), volume(1, "w1")), "0:S 2:S -1(w1) again 1"},
		"most members gone":                            {without(1, 2), "0:S 1:S 2:S"},
		"most members gone, confirmed":                 {both(without(1, 2), confirm), "0:S -1(v1) -2(v2) again 1 again 2"},
		"one of two members gone, confirmed":           {func(s *State) { *s = after(2, without(1)); confirm(s) }, "0:S -1(v1) again 1"},
		"most members gone, removed slot in use":       {both(without(1, 2), removed(0, "v0")), "0:S 1:S 2:S"},
		"initial member unstarted, another replaced":   {both(founding, unstarted, func(s *State) { s.Membership.Members[2].Name = "a-3" }), "0:S 1:J 3:S -2(v2) again 2"},
		"removed slot in use, no volume recorded":      {removed(1, ""), "0:S 1:S 2:S"},
		"most members gone, another removed slot free": {both(without(1, 2), removed(0, "v0"), removed(4, "v4")), "0:S 1:S 2:S -4(v4)"},
		"one member is new":                            {func(s *State) { s.Record.Members = s.Record.Members[:2] }, "0:S 1:S 2:S"},
		"one member is new and unstarted":              {both(recordedAs(RecordedMember{Mode: Joining}), unstarted, gapOf(1)), "0:S 1:J 2:S"},
		"initial member unstarted, all listed":         {both(founding, unstarted), "0:S 1:F 2:S"},
		"initial member unstarted, another gone":       {both(founding, unstarted, without(2)), "0:S 1:J -2(v2) again 2"},
		"initial member started, another gone":         {both(founding, without(2)), "0:S 1:F -2(v2) again 2"},
		"initial member unstarted, another new":        {both(founding, unstarted, func(s *State) { s.Record.Members = s.Record.Members[:2] }), "0:S 1:J 2:S"},
		"sealed member unstarted, another gone":        {both(unstarted, without(2)), "0:S 1:S -2(v2) again 2"},
		"leaving, claim gone":                          {both(leaving, slot1(PodPending, 0, gone)), "0:S 1:S! 2:S"},
		"leaving without a reason":                     {leaving, "0:S 1:S 2:S"},
		"leaving, but another is outvoted":             {both(leaving, holds(1, 1, 2)), "0:S 1:S 2:S"},
		"slot without a member or volume":              {both(gap, noVolume(1)), "0:S 2:S -1()"},
		"slot without a member, volume exists":         {gap, "0:S 2:S"},
		"removed slot, volume not recorded":            {both(gap, removed(1, "")), "0:S 2:S -1(v1)"},
		"removed slot, volume of another cluster":      {both(gap, removed(1, ""), token(1, "u")), "0:S 2:S -1()"},
		"removed slot, different volume":               {both(gap, removed(1, "v1"), volume(1, "w1")), "0:S 2:S -1(v1)"},
		"removed slot, volume gone":                    {both(gap, removed(1, "v1"), noVolume(1)), "0:S 2:S -1(v1)"},
		"surplus slot":                                 {both(beyond, removed(2, "v2")), "0:S 1:S -2(v2)"},
		"surplus slot, volume gone":                    {both(beyond, removed(2, "v2"), noVolume(2)), "0:S 1:S"},
		"surplus slot, different volume":               {both(beyond, removed(2, "v2"), volume(2, "w2")), "0:S 1:S -2(w2)"},
		"surplus slot, volume of another cluster":      {both(beyond, removed(2, "v2"), volume(2, "w2"), token(2, "u")), "0:S 1:S"},
		"surplus slot, not recorded":                   {beyond, "0:S 1:S"},
		"surplus slot, no volume recorded":             {both(beyond, removed(2, ""), noVolume(2)), "0:S 1:S"},
		"removed slot in use again":                    {removed(1, "v1"), "0:S 1:S 2:S"},
	})
}

// used makes the given cluster the last to use the volume of a-1.
func used(by ID) func(*State) { return changed(lastUsedBy(by)) }

// kept records that the volume v1 of a-1 is kept for lost cluster c9.
func kept(s *State) {
	s.Record = s.Record.WithRemoved(RemovedMember{Ordinal: 1, VolumeUID: "v1", LostCluster: 0xc9})
}

// TestNewMemberIsSealedOnlyIfStarted checks the entry of a listed member that is not recorded. It is sealed, and
// recorded as a learner, only if it has started. An unstarted member in a slot whose volume is kept for a lost cluster
// gets no entry, and so no file to start with.
func TestNewMemberIsSealedOnlyIfStarted(t *testing.T) {
	checkRecord(t, map[string]recordCase{
		"a voter":                              {gapOf(1), "0:S 1:S 2:S"},
		"a learner":                            {both(gapOf(1), learns(1)), "0:S 1:S learner 2:S"},
		"an unstarted learner":                 {both(gapOf(1), learns(1), unstarted), "0:S 1:J 2:S"},
		"not started, old volume still exists": {both(gapOf(1), removed(1, "v1"), unstarted), "0:S 1:J 2:S -1(v1)"},
		"unstarted, the old volume is kept":    {both(kept, unstarted), "0:S 2:S -1(v1) of c9"},
		"unstarted, the kept volume is gone":   {both(kept, unstarted, changed(gone)), "0:S 1:J 2:S"},
		"started on the kept volume":           {kept, "0:S 1:S 2:S"},
	})
}

// TestRemovedMemberFreesVolumeUnlessRecordIsOlder checks which volume is recorded for cleanup when etcd no longer lists
// its member. If the claim in the slot is not the recorded claim, but this cluster was the last to use it, the record
// is older than the claim, and its data may be needed. If a different cluster was the last to use it, it is kept.
func TestRemovedMemberFreesVolumeUnlessRecordIsOlder(t *testing.T) {
	other := both(without(1), changed(another))
	goes := both(slot1(PodAbsent, 0, onItsWay), other)
	sealed := recordedAs(RecordedMember{Mode: Sealed, ID: 0xa1})
	founding := recordedAs(RecordedMember{Mode: Founding})
	checkRecord(t, map[string]recordCase{
		"recorded":                                  {without(1), "0:S 2:S -1(v1) again 1"},
		"recorded, last used by a lost cluster":     {both(without(1), used(0xc9)), "0:S 2:S -1(v1) again 1"},
		"different, unused":                         {other, "0:S 2:S -1(w1) again 1"},
		"different, last used by a lost cluster":    {both(other, used(0xc9)), "0:S 2:S -1(w1) of c9 again 1"},
		"different, last used by this cluster":      {both(other, used(0xc1)), "0:S 2:S -1(v1) again 1"},
		"different, last used here, being deleted":  {both(goes, used(0xc1)), "0:S 2:S -1(w1) again 1"},
		"different, last used here, deleted in use": {both(other, used(0xc1), changed(onItsWay)), "0:S 2:S -1(v1) again 1"},
		"not recorded, last used by this cluster":   {both(sealed, without(1), used(0xc1)), "0:S 2:S -1(v1) again 1"},
		"of an initial member, unused":              {both(founding, without(1)), "0:S 2:S -1(v1)"},
		"of an initial member, last used here":      {both(founding, without(1), used(0xc1)), "0:S 2:S -1()"},
		"no claim":                                  {both(without(1), changed(gone), used(0xc9)), "0:S 2:S -1(v1) again 1"},
	})
}

// TestSlotWithoutMemberFreesOnlyUnusedVolume checks which volume in a slot without a member is recorded for cleanup: a
// volume that Kubernetes created for an empty slot, or that is already being deleted and is not in use. A volume that
// this cluster was the last to use is not recorded, and a lost cluster's volume is kept.
func TestSlotWithoutMemberFreesOnlyUnusedVolume(t *testing.T) {
	gap := both(without(1), gapOf(1))
	empty := both(gap, removed(1, ""))
	goes := slot1(PodAbsent, 0, onItsWay)
	checkRecord(t, map[string]recordCase{
		"created for an empty slot":                {empty, "0:S 2:S -1(v1)"},
		"last used by a lost cluster":              {both(empty, used(0xc9)), "0:S 2:S -1(v1) of c9"},
		"last used by this cluster":                {both(empty, used(0xc1)), "0:S 2:S -1()"},
		"no claim":                                 {both(empty, changed(gone), used(0xc9)), "0:S 2:S -1()"},
		"being deleted":                            {both(goes, gap), "0:S 2:S -1(v1)"},
		"being deleted, etcd responds":             {both(slot1(PodStarting, 0, onItsWay, inContact), gap), "0:S 2:S"},
		"being deleted, the pod is ready":          {both(slot1(PodReady, 0, onItsWay), gap), "0:S 2:S"},
		"being deleted, and kept until it is gone": {both(goes, without(1), kept), "0:S 2:S -1(v1) of c9"},
	})
}

// gapOf removes a member from the record.
func gapOf(n int) func(*State) {
	return func(s *State) { s.Record.Members = withoutMember(s.Record.Members, n) }
}

// TestRemoves checks that an announced removal is still pending if the member is the next to be removed.
func TestRemoves(t *testing.T) {
	removes := func(s State, m Member) bool { return s.removes(m.ID) }
	check(t, removes, map[string]slotCase{
		"no member is removed": {nil, false},
		"the member is next":   {slot1(PodPending, 0, gone), true},
		"another member is removed first": {both(slot1(PodPending, 0, gone), func(s *State) {
			*s = after(5, both(slot1(PodPending, 0, gone), func(s *State) { s.down(PodPending, 0, 3); s.Replicas[3].VolumeUID = "" }))
		}), false},
		"the member is surplus":           {func(s *State) { *s = after(2, declared(1)) }, true},
		"leadership is transferred first": {going(0), false},
	})
}

// TestMemberOfSlotDoesNotDependOnOrder checks that, of two members with the same ordinal, the same member counts
// regardless of their order in etcd's list, and that a member with an unknown name does not count as a-0.
func TestMemberOfSlotDoesNotDependOnOrder(t *testing.T) {
	twin := func(id ID) Member { return Member{ID: id, Name: "a-1", Started: true} }
	for what, c := range map[string]struct {
		members []Member
		ordinal int
		want    ID
	}{
		"one member":                    {[]Member{twin(5)}, 1, 5},
		"the lower ID first":            {[]Member{twin(4), twin(5)}, 1, 4},
		"the lower ID last":             {[]Member{twin(5), twin(4)}, 1, 4},
		"one has not started":           {[]Member{twin(4), {ID: 5, PeerURL: "https://a-1.a.b.svc:2380"}}, 1, 5},
		"another slot":                  {[]Member{twin(4), twin(5)}, 2, 0},
		"an unknown member":             {[]Member{{ID: 4, Name: "x"}}, 0, 0},
		"an unknown member and a match": {[]Member{{ID: 4, Name: "x"}, {ID: 5, Name: "a-0"}}, 0, 5},
	} {
		s := State{Name: "a", Membership: Membership{Members: c.members}}
		m, found := s.listedAt(c.ordinal)
		same, listed := s.listed()[c.ordinal]
		if m.ID != c.want || same.ID != c.want || found != (c.want != 0) || listed != found {
			t.Errorf("%s: found %s (%t) and %s (%t), want %s", what, m.ID, found, same.ID, listed, c.want)
		}
	}
}

// confirm makes git confirm etcd's current member list.
func confirm(s *State) { s.Declared.ConfirmedMembers = s.ListToConfirm() }

// TestMissing checks which recorded voters count as missing, and when git has confirmed the list without them.
func TestMissing(t *testing.T) {
	joining := func(s *State) { s.Record = s.Record.With(RecordedMember{Ordinal: 2, Mode: Joining}) }
	replaced := func(s *State) { s.Membership.Members[1].ID, s.Membership.Members[2].ID = 0xb1, 0xb2 }
	noID := func(s *State) { s.Record.ClusterID = 0 }
	for what, c := range map[string]struct {
		change func(*State)
		want   int
	}{
		"no voter missing":                              {nil, 0},
		"one of three missing":                          {without(2), 0},
		"two of three missing":                          {without(1, 2), 2},
		"two of three missing, list unknown":            {both(without(1, 2), unlisted), 0},
		"two of three missing, different cluster":       {both(without(1, 2), func(s *State) { s.Membership.ClusterID = 0xc2 }), 0},
		"two of three missing, no ID recorded":          {both(without(1, 2), noID), 2},
		"one of two missing, and one joining":           {both(without(1, 2), joining), 1},
		"two of three missing, both leaving":            {both(without(1, 2), func(s *State) { s.Record.Members[1].Leaving, s.Record.Members[2].Leaving = true, true }), 0},
		"two replaced, and they respond":                {replaced, 0},
		"two replaced, and they do not respond":         {both(replaced, silence(1, 2)), 2},
		"two listed, but not responding":                {silence(1, 2), 0},
		"two replaced, one ID not recorded":             {both(replaced, silence(1, 2), func(s *State) { s.Record.Members[1].ID = 0 }), 0},
		"two of three missing, too few recorded voters": {both(without(1, 2), func(s *State) { s.Membership.Known, s.Membership.Unrecorded = false, true }), 2},
		"two missing, confirmed":                        {both(without(1, 2), confirm), 0},
		"confirmed, and a slot is empty":                {both(without(1, 2), confirm, func(s *State) { s.Replicas = append(s.Replicas, Replica{Ordinal: 5}) }), 0},
		"confirmed while only one was missing":          {both(without(2), confirm, without(1)), 2},
		"confirmed with a different member listed":      {both(without(0, 2), confirm, func(s *State) { s.Membership.Members[0].ID = 0xa0 }), 2},
		"confirmed for other recorded IDs":              {both(without(1, 2), confirm, func(s *State) { s.Record.Members[1].ID = 0xb1 }), 2},
		"confirmed for other volumes":                   {both(without(1, 2), confirm, func(s *State) { s.Replicas[2].VolumeUID = "w2" }), 2},
		"confirmed for another cluster":                 {both(without(1, 2), confirm, noID), 2},
		"only the IDs are confirmed":                    {both(without(1, 2), func(s *State) { s.Declared.ConfirmedMembers = "a0" }), 2},
		"no member is listed":                           {both(without(0, 1, 2), confirm), 3},
		"confirmed IDs unsorted, one repeated":          {both(func(s *State) { *s = after(5, without(2, 3, 4)) }, confirm, func(s *State) { s.Declared.ConfirmedMembers = "a1," + s.Declared.ConfirmedMembers }), 0},
	} {
		s := after(3, c.change)
		if got := len(s.missing()); got != c.want {
			t.Errorf("%s: %d", what, got)
		}
		if d, speaks := membersMissing(s); speaks != (c.want > 0) {
			t.Errorf("%s: %s", what, d)
		}
		s.Declared.Lifecycle = "Stopped"
		if d, speaks := membersMissing(s); speaks {
			t.Errorf("%s, but the cluster must stop: %s", what, d)
		}
	}
}

// TestConfirmationIsValidForOneLoss checks that a confirmation that has been used, or that was observed while no member
// was missing, does not confirm a later loss of the same members. Otherwise, it stays valid.
func TestConfirmationIsValidForOneLoss(t *testing.T) {
	lost := after(3, without(1, 2))
	declare := func(s *State) { s.Declared.ConfirmedMembers = lost.ListToConfirm() }
	for what, c := range map[string]struct {
		seen func(*State)
		void bool
	}{
		"no member is missing":            {declare, true},
		"a minority is missing":           {both(declare, without(2)), true},
		"no confirmation is declared yet": {nil, false},
		"the confirmation has been used":  {both(declare, without(1, 2)), true},
		"other members are missing":       {both(declare, without(0, 2)), false},
		"the member list is unknown":      {both(declare, unlisted), false},
	} {
		seen, now := after(3, c.seen), after(3, both(declare, without(1, 2)))
		now.Record.VoidConfirmation = RequiredRecord(seen, "").VoidConfirmation
		if missing := now.missing(); len(missing) > 0 != c.void {
			t.Errorf("%s: %d members are missing after that", what, len(missing))
		}
	}
	again := after(3, declare)
	again.Record = RequiredRecord(again, "")
	again.Declared.ConfirmedMembers = ""
	if r := RequiredRecord(again, ""); r.VoidConfirmation == "" || !r.Equal(again.Record) {
		t.Error("a void confirmation is forgotten when git no longer declares it")
	}
}

// TestRecordDifferences checks the description of an outdated record.
func TestRecordDifferences(t *testing.T) {
	gap := both(without(1), gapOf(1), func(s *State) { s.Replicas[1].VolumeUID = "" })
	noMembers := both(without(1, 2), func(s *State) { s.Record.Members, s.Record.Uncompared = nil, true })
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"no difference":                           {nil, ""},
		"one member gone":                         {without(2), "etcd no longer lists a-2; a volume of a-2 remains"},
		"one member gone, volume gone":            {both(without(2), func(s *State) { s.Record.Members[2].VolumeUID, s.Replicas[2].VolumeUID = "", "" }), "etcd no longer lists a-2"},
		"slot without a member or volume":         {gap, "the record is outdated"},
		"slot without a member, volume exists":    {both(gap, removed(1, ""), func(s *State) { s.Replicas[1].VolumeUID = "v1" }), "a volume of a-1 remains"},
		"slot without a member, already recorded": {both(gap, removed(1, "v1")), ""},
		"removed member, volume gone":             {both(without(2), gapOf(2), removed(2, "v2"), func(s *State) { s.Replicas = s.Replicas[:2] }), "a-2 has nothing left to clean up"},
		"leaving without a reason":                {func(s *State) { s.Record.Members[1].Leaving = true }, "the record is outdated"},
		"an unneeded confirmation":                {func(s *State) { s.Declared.ConfirmedMembers = "a0/1" }, "the annotation etcd.quorate.dev/confirm-members is no longer valid: no member is missing"},
		"no members recorded":                     {noMembers, "etcd lists a-0, which is not recorded"},
		"outdated log version":                    {func(s *State) { s.Record.LogVersion = "3.5"; stores("3.5", "3.5", "3.5", "3.5")(s) }, "all entries in the members' logs are from etcd 3.6 or newer"},
	} {
		if got := strings.Join(after(3, c.change).recordDifferences(), "; "); got != c.want {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// TestRestoredRecordOfBootstrapIsCorrectedFirst checks that missing members do not prevent the correction of a record
// that would let members bootstrap a formed cluster again.
func TestRestoredRecordOfBootstrapIsCorrectedFirst(t *testing.T) {
	bootstrap := func(s *State) { s.Record, s.ReportedClusterID = FoundingRecord("t", 3), 0 }
	for what, c := range map[string]struct {
		change func(*State)
		blocks bool
	}{
		"a record of a formed cluster":            {without(1, 2), true},
		"a record of the bootstrap":               {both(bootstrap, without(1, 2)), true},
		"formed according to the status":          {both(bootstrap, without(1, 2), func(s *State) { s.ReportedClusterID = 1 }), false},
		"formed according to a claim":             {both(bootstrap, without(1, 2), func(s *State) { s.Replicas[0].LastUse.ClusterID = 1 }), false},
		"a record of a formed cluster, no status": {both(without(1, 2), func(s *State) { s.ReportedClusterID = 0 }), true},
	} {
		if _, blocks := membersMissing(after(3, c.change)); blocks != c.blocks {
			t.Errorf("%s: blocked is %t", what, blocks)
		}
	}
}

// TestListedMemberStandsForRecordedOne checks which listed member counts as the recorded member, or has replaced it.
func TestListedMemberStandsForRecordedOne(t *testing.T) {
	unknown := func(mode Mode) RecordedMember { return RecordedMember{Mode: mode} }
	known := RecordedMember{Mode: Sealed, ID: 1}
	for what, c := range map[string]struct {
		recorded RecordedMember
		listed   Member
		want     bool
	}{
		"the same member":                               {known, Member{ID: 1}, true},
		"a different member that responds":              {known, Member{ID: 2, Answers: true}, true},
		"a different member, not responding":            {known, Member{ID: 2}, false},
		"a voter, no ID recorded":                       {unknown(Sealed), Member{ID: 2}, true},
		"a responding learner, no ID recorded":          {unknown(Founding), Member{ID: 2, Learner: true, Answers: true}, true},
		"a started learner, no ID recorded":             {unknown(Sealed), Member{ID: 2, Learner: true, Started: true}, true},
		"an unstarted learner, no ID recorded":          {unknown(Sealed), Member{ID: 2, Learner: true}, false},
		"a started learner, recorded as initial member": {unknown(Founding), Member{ID: 2, Learner: true, Started: true}, false},
	} {
		if got := c.recorded.standsBy(c.listed); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
	s := healthy(3)
	if _, err := AnnouncedRecord(s, 0xee); err == nil {
		t.Error("the removal of a member that etcd does not list is recorded")
	}
}
