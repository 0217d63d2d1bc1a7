package clusters

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// TestChangesAlreadyMadeAreNotRepeated checks that changes that etcd has already made are not requested again.
func TestChangesAlreadyMadeAreNotRepeated(t *testing.T) {
	now := decide.Membership{
		Known: true, Downgrade: "3.6", StaleAlarms: []decide.Alarm{{ID: 9, Kind: "CORRUPT"}},
		Members: []decide.Member{
			{ID: 1, Name: "a-0", PeerURL: "http://a-0", Leader: true, Alarms: []decide.AlarmKind{"NOSPACE"}},
			{ID: 2, PeerURL: "http://a-1", Learner: true},
		},
	}
	for name, test := range map[string]struct {
		change change
		want   bool
	}{
		"learner to add is listed":              {addition(decide.AddLearner{Ordinal: 1, PeerURL: "http://a-1"}), true},
		"learner to add is not listed":          {addition(decide.AddLearner{Ordinal: 2, PeerURL: "http://a-2"}), false},
		"member to promote is a voter":          {promotion(decide.PromoteLearner{ID: 1}), true},
		"member to promote is a learner":        {promotion(decide.PromoteLearner{ID: 2}), false},
		"member to promote is not listed":       {promotion(decide.PromoteLearner{ID: 3}), false}, // etcd decides
		"member to remove is not listed":        {removal(decide.RemoveMember{ID: 3}), true},
		"member to remove is listed":            {removal(decide.RemoveMember{ID: 2}), false},
		"transfer target leads":                 {moveLeader(decide.MoveLeader{From: 2, To: 1}), true},
		"a third member leads":                  {moveLeader(decide.MoveLeader{From: 2, To: 3}), true},
		"previous leader still leads":           {moveLeader(decide.MoveLeader{From: 1, To: 2}), false},
		"requested downgrade is enabled":        {downgrade(decide.EnableDowngrade{Version: "3.6"}), true},
		"different downgrade is enabled":        {downgrade(decide.EnableDowngrade{Version: "3.5"}), false},
		"downgrade to cancel is enabled":        {noDowngrade(decide.CancelDowngrade{Version: "3.6"}), false},
		"alarm to disarm is active":             {disarming(decide.DisarmAlarm{ID: 1, Kind: "NOSPACE"}), false},
		"alarm of a removed member is active":   {disarming(decide.DisarmAlarm{ID: 9, Kind: "CORRUPT"}), false},
		"member has only a different alarm":     {disarming(decide.DisarmAlarm{ID: 1, Kind: "CORRUPT"}), true},
		"only a different member has the alarm": {disarming(decide.DisarmAlarm{ID: 2, Kind: "NOSPACE"}), true},
	} {
		if got := test.change.alreadySo(now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !noDowngrade(decide.CancelDowngrade{Version: "3.6"}).alreadySo(decide.Membership{Known: true}) {
		t.Error("a downgrade that is not in progress would be canceled")
	}
}

// TestPeers checks that a replica that has not started gets its pod's name, and that other members get unique names and
// keep all their URLs, even if their names are equal to each other or to a replica's name.
func TestPeers(t *testing.T) {
	c := &cluster{state: decide.State{Name: "a", Record: decide.Record{Guests: []decide.ID{4, 5, 6}}}}
	members := []decide.Member{
		{ID: 1, Name: "a-0", PeerURL: "https://a-0.a.ns.svc:2380"},
		{ID: 2, PeerURL: "https://a-1.a.ns.svc:2380"},
		{ID: 0xb, PeerURL: "https://10.0.0.1:2380"},
		{ID: 4, Name: "default", PeerURL: "https://two:2380", MorePeerURLs: []string{"https://one:2380"}},
		{ID: 5, Name: "default", PeerURL: "https://three:2380"},
		{ID: 6, Name: "a-0", PeerURL: "https://a-0.old.ns.svc:2380"},
	}
	want := map[string][]string{
		"a-0": {members[0].PeerURL}, "a-1": {members[1].PeerURL}, "guest-000000000000000b": {members[2].PeerURL},
		"guest-0000000000000004": {"https://one:2380", "https://two:2380"}, "guest-0000000000000005": {members[4].PeerURL},
		"guest-0000000000000006": {members[5].PeerURL},
	}
	if got := c.peers(decide.Membership{Known: true, Members: members}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if got := c.peers(decide.Membership{Members: members}); got != nil {
		t.Errorf("membership is unknown, but got peers %v", got)
	}
}

// TestMadeAfterRemoval checks that a claim counts as new only if it is certainly not the removed member's claim.
func TestMadeAfterRemoval(t *testing.T) {
	c := &cluster{}
	c.state.Record.Removed = []decide.RemovedMember{{Ordinal: 1, VolumeUID: "old"}, {Ordinal: 2}}
	for ordinal, want := range map[int]bool{0: false, 1: true, 2: false} {
		if got := c.madeAfterRemoval(ordinal, "new"); got != want {
			t.Errorf("ordinal %d: %v", ordinal, got)
		}
	}
	if c.madeAfterRemoval(1, "old") {
		t.Error("the volume of the removed member counts as new")
	}
}

// TestPromotionNeedsQuorum checks that a learner is promoted only while it and a majority of the voters respond.
// Otherwise, a dead learner could become the second of two voters, and the other voter alone would not be a majority.
func TestPromotionNeedsQuorum(t *testing.T) {
	for _, test := range []struct {
		size  int
		hangs []int
		want  bool
	}{{2, nil, true}, {2, []int{1}, false}, {3, nil, true}, {3, []int{1}, false}, {3, []int{2}, false}} {
		l := newLife(t)
		learner := test.size - 1
		l.etcd.members, l.pods = l.etcd.members[:test.size], l.pods[:test.size]
		l.etcd.members[learner].IsLearner = true
		c := l.seen(l.old)
		c.state.Record.Members = c.state.Record.Members[:test.size]
		l.onVolumes(c, "")
		for _, ordinal := range test.hangs {
			l.etcd.running[ordinal].hangs.Store(true)
		}
		outcome, err := c.carryOut(t.Context(), decide.PromoteLearner{ID: decide.ID(learner + 1), Name: objects.PodName("a", learner)})
		if err != nil || outcome.Changed != test.want || l.etcd.members[learner].IsLearner == test.want {
			t.Errorf("%d members, ordinals %v not responding: %+v, %v", test.size, test.hangs, outcome, err)
		}
	}
}

// TestCorruptAlarmBlocksPromotion checks that a learner is not promoted if it was copied from a leader whose data is
// now in doubt. With the learner's vote, the leader would have a majority, and the members with the correct data would
// be removed.
func TestCorruptAlarmBlocksPromotion(t *testing.T) {
	for _, alarm := range []string{"", "alarm:CORRUPT"} {
		l := newLife(t)
		l.etcd.members[2].IsLearner = true
		c := l.seen(l.old)
		l.onVolumes(c, "")
		if d := decide.Decide(c.state); d.Rule != "PromoteLearner" {
			t.Fatal(d)
		}
		l.etcd.alarm.Store(&alarm)
		outcome, err := c.carryOut(t.Context(), decide.PromoteLearner{ID: 3, Name: "a-2"})
		if want := alarm == ""; err != nil || outcome.Changed != want || l.etcd.members[2].IsLearner == want {
			t.Errorf("with alarm %q: %+v, %v", alarm, outcome, err)
		}
	}
}

// TestPromotionNeedsVolume checks that a learner is not promoted while its volume is being deleted with its pod. As a
// voter, it would be lost together with its volume.
func TestPromotionNeedsVolume(t *testing.T) {
	for _, going := range []string{"data-a-0", "data-a-2"} {
		l := newLife(t)
		l.etcd.members[2].IsLearner = true
		c := l.seen(l.old)
		l.onVolumes(c, going)
		outcome, err := c.promoteLearner(t.Context(), decide.PromoteLearner{ID: 3, Name: "a-2"})
		if err != nil || outcome.Changed != (going == "data-a-0") {
			t.Errorf("%s is being deleted: %+v, %v", going, outcome, err)
		}
	}
}

// onVolumes gives each replica its recorded volume. The claim named going, if any, is being deleted.
func (l *life) onVolumes(c *cluster, going string) {
	for i := range c.state.Replicas {
		c.state.Replicas[i].VolumeUID = fmt.Sprint("volume-", i)
	}
	c.live.kube = clientOf(l.T, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claim := claimed("")
		claim.Name = path.Base(r.URL.Path)
		claim.UID = types.UID("volume-" + claim.Name[len(claim.Name)-1:])
		if claim.Name == going {
			claim.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(claim)
	}))
}

// TestAddLearnerWaitsForUnstartedMembers checks that a learner is not added while another member, even a voter that was
// just added, has not started: that member would start with an outdated list. Nor is a learner added to a slot that
// already has a member, at any address.
func TestAddLearnerWaitsForUnstartedMembers(t *testing.T) {
	for _, url := range []string{"", "http://a-2.a:2380", peerOf(3), "http://10.0.0.9:2380"} {
		l := newLife(t)
		l.etcd.members, l.pods = l.etcd.members[:2:2], l.pods[:2]
		l.record.Members = l.record.Members[:2:2]
		c := l.seen(l.old)
		c.live.kube = clientOf(t, &storageServer{})
		listed := 3
		if url != "" {
			l.etcd.add(url)
		}
		outcome, err := c.addLearner(t.Context(), decide.AddLearner{Ordinal: 2, PeerURL: peerOf(2)})
		if err != nil || outcome.Changed != (url == "") || len(l.etcd.members) != listed {
			t.Errorf("with peer URL %q: %+v, %v, %d members", url, outcome, err, len(l.etcd.members))
		}
	}
}
