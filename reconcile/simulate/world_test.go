package simulate_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/simulate"
)

// formed returns a world in which replicas members have formed a cluster and are sealed.
func formed(t *testing.T, replicas int) *simulate.World {
	t.Helper()
	return form(t, simulate.New("a", decidetest.Declared(replicas), 0))
}

// formedTogether is like formed, but two members may join the cluster at the same time.
func formedTogether(t *testing.T, replicas int) *simulate.World {
	t.Helper()
	w := simulate.New("a", decidetest.Declared(replicas), 0)
	w.Together = true
	return form(t, w)
}

func form(t *testing.T, w *simulate.World) *simulate.World {
	t.Helper()
	if steps := w.Converge(patienceOfTests); steps[len(steps)-1].Decision.Verdict != decide.Done {
		t.Fatalf("it has not formed: %v", steps[len(steps)-1].Decision)
	}
	return w
}

func memberNamed(t *testing.T, w *simulate.World, name string) decide.Member {
	t.Helper()
	for _, m := range w.Observe().Membership.Members {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("etcd does not list %s: %v", name, w.Observe().Membership.Members)
	return decide.Member{}
}

// TestSameSeedGivesSameWorld checks that the same seed and the same calls produce the same world, and that changes to a
// world do not affect its copies.
func TestSameSeedGivesSameWorld(t *testing.T) {
	a, b := simulate.New("a", decidetest.Declared(5), 7), simulate.New("a", decidetest.Declared(5), 7)
	copied := a.Clone()
	for range 6 {
		a.Pass(simulate.NoCrash)
		a.Tick()
	}
	if !reflect.DeepEqual(copied.Observe(), b.Observe()) {
		t.Error("a copy has changed with the world")
	}
	for range 6 {
		b.Pass(simulate.NoCrash)
		b.Tick()
		copied.Pass(simulate.NoCrash)
		copied.Tick()
	}
	if !reflect.DeepEqual(a.Observe(), b.Observe()) || !reflect.DeepEqual(a.Observe(), copied.Observe()) {
		t.Error("the same seed gives different worlds")
	}
}

// TestSimulatedMemberJoinsAndLeaves checks that a simulated member can be added as a learner, promoted and removed, as
// with real etcd and Kubernetes.
func TestSimulatedMemberJoinsAndLeaves(t *testing.T) {
	w := formed(t, 3)
	add := decide.AddLearner{Ordinal: 3, PeerURL: "https://a-3.a:2380"}
	if writes := w.Do(add, simulate.NoCrash); len(writes) != 1 {
		t.Fatalf("adding wrote %q", writes)
	}
	if m := w.Observe().Membership.Members[3]; m.Name != "" || m.PeerURL != add.PeerURL || m.Started || !m.Learner {
		t.Errorf("a member that was added has a name or has started: %+v", m)
	}
	if writes := w.Do(add, simulate.NoCrash); len(writes) != 0 {
		t.Errorf("adding again wrote %q", writes)
	}
	if writes := w.Do(decide.ApplyObjects{}, simulate.NoCrash); len(writes) != 3 {
		t.Errorf("applying wrote %q", writes)
	}
	w.Tick()
	w.Tick()
	learner := memberNamed(t, w, "a-3")
	promote := decide.PromoteLearner{ID: learner.ID, Name: learner.Name}
	if writes := w.Do(promote, simulate.NoCrash); len(writes) != 0 {
		t.Error("a learner is promoted before it is in sync")
	}
	w.Tick()
	if writes := w.Do(promote, simulate.NoCrash); len(writes) != 1 || memberNamed(t, w, "a-3").Learner {
		t.Errorf("the learner is not promoted: %q", writes)
	}
	leader := memberNamed(t, w, "a-0")
	w.Do(decide.MoveLeader{From: leader.ID, To: learner.ID}, simulate.NoCrash)
	if !memberNamed(t, w, "a-3").Leader {
		t.Error("the leader has not moved")
	}
	w.Do(decide.RemoveMember{ID: learner.ID, Name: learner.Name}, simulate.NoCrash)
	if s := w.Observe(); len(s.Membership.Members) != 3 || s.Replica(3).Pod != decide.PodFailing || !s.Membership.Known {
		t.Errorf("the removed member still runs: %+v", s.Replica(3))
	}
	w.Do(decide.DeleteVolume{Ordinal: 3, VolumeUID: "another"}, simulate.NoCrash)
	if w.Observe().Replica(3).VolumeTerminating {
		t.Error("a volume is deleted with a different UID")
	}
	w.Do(decide.DeleteVolume{Ordinal: 3, VolumeUID: w.Observe().Replica(3).VolumeUID}, simulate.NoCrash)
	w.Do(decide.RestartReplica{Ordinal: 2, PodUID: w.Observe().Replica(2).PodUID}, simulate.NoCrash)
	if violations := w.Violations(); len(violations) > 0 {
		t.Errorf("violations: %q", violations)
	}
}

// TestNewMemberStartsBeforeItServes checks that a new member publishes its name before it accepts clients, and that the
// next member can be added before the first accepts clients.
func TestNewMemberStartsBeforeItServes(t *testing.T) {
	silent := 0
	for seed := range uint64(8) {
		w := simulate.New("a", decidetest.Declared(3), seed)
		w.Together = true
		form(t, w)
		w.Declared.Replicas = 5
		for range patienceOfTests {
			s := w.Observe()
			d, _ := w.Pass(simulate.NoCrash)
			m := s.Membership.Members[len(s.Membership.Members)-1]
			if d.Rule == "JoinTogether" && !m.Answers && m.Started && s.Replica(3).Pod == decide.PodStarting {
				silent++
			}
			w.Tick()
		}
		if d := decide.Decide(w.Observe()); d.Verdict != decide.Done || len(w.Violations()) > 0 {
			t.Errorf("seed %d: %s, %q", seed, d, w.Violations())
		}
	}
	if silent == 0 {
		t.Error("every member accepts clients immediately")
	}
}

// TestStrictReconfigCheckRefusesUnsafeChanges checks that etcd does not add a member while a voter is down, or remove a
// member that the others need for quorum.
func TestStrictReconfigCheckRefusesUnsafeChanges(t *testing.T) {
	w := formed(t, 3)
	w.NodeDown(2, true)
	if writes := w.Do(decide.AddLearner{Ordinal: 3, PeerURL: "https://a-3.a:2380"}, simulate.NoCrash); len(writes) != 0 {
		t.Errorf("a member is added while another is down: %q", writes)
	}
	if writes := w.Do(decide.RemoveMember{ID: memberNamed(t, w, "a-1").ID, Name: "a-1"}, simulate.NoCrash); len(writes) != 0 {
		t.Errorf("a member is removed that the others need: %q", writes)
	}
	if writes := w.Do(decide.RemoveMember{ID: memberNamed(t, w, "a-2").ID, Name: "a-2"}, simulate.NoCrash); len(writes) != 1 {
		t.Error("a member that is down is not removed")
	}
}

// TestEtcdRefusesDataOfNewerVersion checks that etcd does not start with data of a newer minor version unless a
// downgrade was enabled.
func TestEtcdRefusesDataOfNewerVersion(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		w := formed(t, 3)
		if prepared {
			w.Do(decide.EnableDowngrade{Version: "3.5"}, simulate.NoCrash)
			w.Tick()
		}
		w.Do(decide.StartRollout{Version: "3.5.35", SpecHash: "h1"}, simulate.NoCrash)
		w.KillPod(2)
		for range 3 {
			w.Tick()
		}
		if m := memberNamed(t, w, "a-2"); m.Answers != prepared {
			t.Errorf("prepared = %t, responding = %t: %s", prepared, m.Answers, w.Observe().Replica(2).PodMessage)
		}
	}
}

// TestMemberWithLongestLogLeads checks that the running voter with the longest log is elected, so that entries held by
// a majority are not lost.
func TestMemberWithLongestLogLeads(t *testing.T) {
	w := formed(t, 3)
	w.Slow(2, true)
	for range 5 {
		w.Tick()
	}
	w.NodeDown(0, true)
	if !memberNamed(t, w, "a-1").Leader || len(w.Violations()) > 0 {
		t.Errorf("a-1 does not lead: %+v, %q", w.Observe().Membership.Members, w.Violations())
	}
}

// TestUnsealedMemberWithoutVolumeCannotRejoin checks that an unsealed member that lost its volume does not start again
// while a member that has seen it is running, but does start if it is alone.
func TestUnsealedMemberWithoutVolumeCannotRejoin(t *testing.T) {
	for _, alone := range []bool{false, true} {
		w := simulate.New("a", decidetest.Declared(3), 0)
		w.Pass(simulate.NoCrash)
		w.Tick()
		w.Tick()
		w.LoseVolume(1)
		w.NodeDown(0, alone)
		w.NodeDown(2, alone)
		w.Tick()
		w.Tick()
		if runs := w.Observe().Replica(1).ClusterID != 0; runs != alone {
			t.Errorf("alone %t, but starts %t: %s", alone, runs, w.Observe().Replica(1).PodMessage)
		}
	}
}

// TestWorldDetectsViolations checks that the world detects events that must never happen, whatever causes them.
func TestWorldDetectsViolations(t *testing.T) {
	restart := func(w *simulate.World, n int) {
		w.Do(decide.RestartReplica{Ordinal: n, PodUID: w.Observe().Replica(n).PodUID}, simulate.NoCrash)
	}
	remove := func(w *simulate.World, name string) {
		w.Do(decide.RemoveMember{ID: memberNamed(t, w, name).ID, Name: name}, simulate.NoCrash)
	}
	for want, c := range map[string]struct {
		replicas int
		do       func(*simulate.World)
	}{
		"a-2 is restarted, which loses quorum": {3, func(w *simulate.World) { restart(w, 1); restart(w, 2) }},
		"a-0 is restarted, which loses quorum": {1, func(w *simulate.World) { restart(w, 0) }},
		"the last voter would be removed":      {1, func(w *simulate.World) { remove(w, "a-0") }},
		"but the others do not have quorum":    {3, func(w *simulate.World) { w.NodeDown(1, true); remove(w, "a-2") }},
		"the volume of a-2 is deleted, but etcd still lists the member": {3, func(w *simulate.World) {
			w.Do(decide.DeleteVolume{Ordinal: 2, VolumeUID: w.Observe().Replica(2).VolumeUID}, simulate.NoCrash)
		}},
		"a-1 starts as a voter again without its previous votes": {3, func(w *simulate.World) {
			w.LoseVolume(1)
			w.PutBackRecord()
			w.Pass(0)
			w.NodeDown(0, true)
			w.NodeDown(2, true)
			w.Tick()
			w.Tick()
		}},
		"a-3 bootstraps cluster": {3, func(w *simulate.World) {
			w.Do(decide.AddLearner{Ordinal: 3, PeerURL: "https://a-3.a:2380"}, simulate.NoCrash)
			w.Do(decide.ApplyObjects{}, simulate.NoCrash)
			s := w.Observe()
			s.Record = decide.FoundingRecord(s.Record.Token, 4)
			*w = *simulate.From(s, 0)
			w.Tick()
			w.Tick()
		}},
		"a-3 is added although the maximum number of learners exists": {3, func(w *simulate.World) {
			w.AddLearner(4)
			w.Do(decide.AddLearner{Ordinal: 3, PeerURL: "https://a-3.a:2380"}, simulate.NoCrash)
		}},
		"a-3 is added with peer URL https://a-4.a:2380": {3, func(w *simulate.World) {
			w.Do(decide.AddLearner{Ordinal: 3, PeerURL: "https://a-4.a:2380"}, simulate.NoCrash)
		}},
		"entries, but 3000 were acknowledged": {3, func(w *simulate.World) {
			w.Slow(2, true)
			for range 5 {
				w.Tick()
			}
			w.LoseVolume(1)
			w.PutBackRecord()
			w.Pass(0)
			w.NodeDown(0, true)
			w.NodeDown(2, true)
			w.Tick()
			w.Tick()
			w.NodeDown(2, false)
			w.Tick()
			w.Tick()
		}},
		"a-2 runs etcd 3.8.0 on data of 3.6": {3, func(w *simulate.World) {
			w.Do(decide.StartRollout{Version: "3.8.0", SpecHash: "h1"}, simulate.NoCrash)
			w.KillPod(2)
			w.Tick()
			w.Tick()
		}},
		"the StatefulSet is scaled to 2, but etcd still lists a-2": {3, func(w *simulate.World) {
			s := w.Observe()
			s.Membership.Known, s.Record.Members = false, s.Record.Members[:2]
			*w = *simulate.From(s, 0)
			w.Do(decide.ApplyObjects{}, simulate.NoCrash)
		}},
		"objects of a running or requested cluster are deleted": {3, func(w *simulate.World) {
			w.Do(decide.DeleteObjects{}, simulate.NoCrash)
		}},
		"the data of a-1, which may be right, is discarded": {3, func(w *simulate.World) {
			w.Differ(0)
			w.RaiseNameless()
			w.Do(decide.RemoveMember{ID: w.Observe().MembersInOrder()[1].ID, Name: "a-1"}, simulate.NoCrash)
		}},
	} {
		w := formed(t, c.replicas)
		c.do(w)
		if !slices.ContainsFunc(w.Violations(), func(v string) bool { return strings.Contains(v, want) }) {
			t.Errorf("want %q, got %q", want, w.Violations())
		}
	}
}

// TestFrom checks that a world built from a state reaches the same end as the observed world. It covers every
// beginning, and a formed cluster after every incident that is visible in a state.
func TestFrom(t *testing.T) {
	for name, w := range beginnings(3, 0) {
		t.Run(name, func(t *testing.T) { foretells(t, w) })
	}
	for _, b := range incidents(3) {
		if b.end != nil || b.name == "unpullable version" || strings.HasPrefix(b.name, "differ") {
			continue // a state does not show whether a node, network or registry comes back, or the data of members
		}
		t.Run(b.name, func(t *testing.T) {
			w := formed(t, 3)
			b.do(w)
			foretells(t, w)
			w.Tick()
			foretells(t, w)
		})
	}
}

func foretells(t *testing.T, w *simulate.World) {
	t.Helper()
	want, got := last(w.Clone()), last(simulate.From(w.Observe(), 0))
	if got.Verdict != want.Verdict || got.Rule != want.Rule {
		t.Errorf("forecast %s\nbut it is %s", got, want)
	}
}

func last(w *simulate.World) decide.Decision {
	steps := w.Converge(patienceOfTests)
	return steps[len(steps)-1].Decision
}
