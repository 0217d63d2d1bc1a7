package decide

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRemedy checks that the suggested action depends on the cause of the delay.
func TestRemedy(t *testing.T) {
	const leader, move, finalizers, learner = "the leader's log", "etcdctl move-leader", "finalizers", "start again with a new learner"
	for rule, want := range map[string]string{
		"Terminating": finalizers, "Stop": finalizers, "WaitForCleanUp": finalizers, "PromoteLearner": learner, "ScaleUp": "kubectl delete pvc data-a-0",
		"ReplaceMember": move, "ScaleDown": move, "RollOneMember": move, "PrepareUpgrade": leader, "Downgrade": leader, "DisarmAlarm": leader, "Defragment": leader, "Seal": leader,
		"WaitForMembers": "the cluster's objects", "QuorumLost": "the cluster's objects", LockedElsewhere: "kubectl delete lease a",
	} {
		if got := healthy(3).remedy(Decision{Rule: rule}); !strings.Contains(got, want) {
			t.Errorf("%s: %q", rule, got)
		}
	}
	overdue := func(ago time.Duration) func(*Replica) {
		return func(r *Replica) { r.PodGoing = noon.Add(-ago) }
	}
	const force, node, objects = "--force", "bring back the node of ", "the cluster's objects"
	for what, c := range map[string]struct {
		change        func(*State)
		pods, members string // parts of the messages
		forced        bool
	}{
		"healthy":            {nil, objects, objects, false},
		"the pod is failing": {slot1(PodFailing, 0), "kubectl logs a-1", "kubectl logs a-1", false},
		"the pod is ready, member not responding":    {slot1(PodReady, 0), "--etcd-access", "--etcd-access", false},
		"the pod is missing":                         {slot1(PodAbsent, 0), "statefulset a", "statefulset a", false},
		"no pod, and the claim being deleted":        {slot1(PodAbsent, 0, onItsWay), "pvc data-a-1", "pvc data-a-1", false},
		"a pending pod's claim is being deleted":     {slot1(PodPending, 0, onItsWay), "kubectl logs a-1", "kubectl logs a-1", false},
		"the pod is terminating, not overdue":        {slot1(PodTerminating, 0, overdue(2*time.Minute-1)), node, node, false},
		"the terminating pod is overdue":             {slot1(PodTerminating, 0, overdue(2*time.Minute)), node, node, true},
		"the pod's termination deadline is unknown":  {slot1(PodTerminating, 0), node, node, false},
		"a failing pod with a past deadline":         {slot1(PodFailing, 0, overdue(time.Hour)), "kubectl logs a-1", "kubectl logs a-1", false},
		"the member returns a different list":        {disagrees, objects, "restart the member", false},
		"different list, and the pod is terminating": {both(disagrees, slot1(PodTerminating, 0)), node, node, false},
		"the member is a learner":                    {learns(1), objects, learner, false},
		"the member is a learner without a pod":      {both(learns(1), slot1(PodAbsent, 0)), "statefulset a", "statefulset a", false},
	} {
		s := after(3, c.change)
		pods, members := s.remedyForPods(), s.remedyForMembers()
		if !strings.Contains(pods, c.pods) || !strings.Contains(members, c.members) {
			t.Errorf("%s: %q, %q", what, pods, members)
		}
		if strings.Contains(pods, force) != c.forced || strings.Contains(s.remedyForNodes(), force) != c.forced {
			t.Errorf("%s: %q, %q", what, pods, s.remedyForNodes())
		}
	}
}

// TestDeadlineFor checks that rejected pods require manual action after two minutes, and everything else after half an
// hour.
func TestDeadlineFor(t *testing.T) {
	refused := func(r *Replica) { r.PodRefused = "exceeded quota" }
	for what, c := range map[string]struct {
		change func(*State)
		rule   string
		want   time.Duration
	}{
		"no pod is rejected":                         {nil, "WaitForMembers", longPatience},
		"the pod is rejected":                        {slot1(PodAbsent, 0, refused), "WaitForMembers", patience},
		"the pod exists after a rejection":           {slot1(PodPending, 0, refused), "WaitForMembers", longPatience},
		"the pod is missing, but not rejected":       {slot1(PodAbsent, 0), "WaitForMembers", longPatience},
		"rejected, but another pass holds the lease": {slot1(PodAbsent, 0, refused), LockedElsewhere, longPatience},
	} {
		if got := after(3, c.change).deadlineFor(Decision{Rule: c.rule}); got != c.want {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// TestWaits checks how a wait is recorded, and which other waits continue.
func TestWaits(t *testing.T) {
	at := func(rule string, since, seen time.Duration) Waited {
		return Waited{Rule: rule, Since: noon.Add(-since), Seen: noon.Add(-seen)}
	}
	a := Decision{Rule: "A", Verdict: Wait}
	for what, c := range map[string]struct {
		before  []Waited
		d       Decision
		changed bool
		want    []Waited
	}{
		"the wait begins":                      {nil, a, false, []Waited{at("A", 0, 0)}},
		"the wait continues":                   {[]Waited{at("A", 9, 9)}, a, false, []Waited{at("A", 9, 9)}},
		"last seen ten minutes ago":            {[]Waited{at("A", time.Hour, 10*time.Minute)}, a, false, []Waited{at("A", time.Hour, 0)}},
		"last seen half an hour ago":           {[]Waited{at("A", time.Hour, 30*time.Minute)}, a, false, []Waited{at("A", time.Hour, 0)}},
		"last seen more than half an hour ago": {[]Waited{at("A", time.Hour, 30*time.Minute+1)}, a, false, []Waited{at("A", 0, 0)}},
		"other waits are recorded":             {[]Waited{at("C", 3, 1), at("B", 3, 1), at("D", 4, 1)}, a, false, []Waited{at("D", 4, 1), at("B", 3, 1), at("C", 3, 1), at("A", 0, 0)}},
		"other waits, sorted by last seen":     {[]Waited{at("C", 3, 1), at("D", 4, 2)}, a, false, []Waited{at("D", 4, 2), at("C", 3, 1), at("A", 0, 0)}},
		"the pass made a change":               {[]Waited{at("A", 9, 9)}, a, true, nil},
		"the decision is Done":                 {[]Waited{at("A", 9, 9)}, Decision{Rule: "A", Verdict: Done}, false, nil},
		"the decision is a Block":              {[]Waited{at("A", 9, 9)}, Decision{Rule: "A", Verdict: Block}, false, nil},
		"the decision is an overdue Block":     {[]Waited{at("A", 9, 9)}, Decision{Rule: "A", Verdict: Block, overdue: true}, false, []Waited{at("A", 9, 9)}},
		"the decision is an Act":               {[]Waited{at("A", 9, 9)}, Decision{Rule: "A", Verdict: Act}, false, []Waited{at("A", 9, 9)}},
	} {
		if got := Waits(State{Now: noon, Waited: c.before}, c.d, c.changed); !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %v\nwant %v", what, got, c.want)
		}
	}
	var many []Waited
	for i := range 12 {
		many = append(many, at(string(rune('B'+i)), time.Hour, time.Duration(12-i)))
	}
	kept := Waits(State{Now: noon, Waited: many}, a, false)
	if len(kept) != 10 || slices.ContainsFunc(kept, func(w Waited) bool { return w.Rule < "E" && w.Rule != "A" }) {
		t.Errorf("the most recent waits are not kept: %v", kept)
	}
}

// TestDecideRetriesActionAfterDeadline checks that an action is retried indefinitely, and that only a pass whose action
// did not change anything blocks.
func TestDecideRetriesActionAfterDeadline(t *testing.T) {
	s := after(3, both(drifts, func(s *State) { s.Waited = []Waited{{Rule: "ApplyObjects", Since: noon.Add(-time.Hour), Seen: noon}} }))
	if d := Decide(s); d.Verdict != Act {
		t.Errorf("after an hour: %s", d)
	}
	if d := NoProgress(s, Decide(s), "refused"); d.Verdict != Block {
		t.Errorf("after an hour without effect: %s", d)
	}
}

func TestOrdinalOfName(t *testing.T) {
	for name, want := range map[string]int{"a-0": 0, "a-63": 63, "a-64": -1, "a--1": -1, "a-01": -1, "a-": -1, "a-x": -1, "b-1": -1, "a": -1, "": -1} {
		n, ours := State{Name: "a"}.Ordinal(name)
		if ours != (want >= 0) || n != max(want, 0) {
			t.Errorf("%q: %d, %t", name, n, ours)
		}
	}
}

// TestCommandsNameNamespace checks that kubectl commands in decisions and warnings contain the cluster's namespace.
func TestCommandsNameNamespace(t *testing.T) {
	s := healthy(3)
	s.Namespace = "prod"
	for message, want := range map[string]string{
		"run kubectl delete job a-restore":                      "run kubectl -n prod delete job a-restore",
		"run kubectl create job --from=cronjob/a-backup NAME":   "run kubectl -n prod create job --from=cronjob/a-backup NAME",
		"Run kubectl cordon on its node, then kubectl logs a-0": "Run kubectl cordon on its node, then kubectl -n prod logs a-0",
		"run kubectl -n prod delete job a-restore":              "run kubectl -n prod delete job a-restore",
	} {
		if got := s.inNamespace(message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	relabelled, rejected := s, s
	relabelled.Objects.Relabelled = []string{"Pod a-0 lacks its labels"}
	rejected.Declared.Problems, rejected.Backups.Since = []string{"unknown field"}, noon
	for _, text := range append(rejected.Warnings(), Decide(relabelled).Message) {
		if !strings.Contains(text, "kubectl -n prod ") {
			t.Errorf("%q", text)
		}
	}
}
