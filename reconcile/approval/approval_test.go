package approval_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/approval"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

const key = "n/a"

// world returns a world with a converged cluster of three members. The seed determines its timing.
func world(seed uint64) *simulate.World {
	w := simulate.New("a", decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"}, seed)
	w.Converge(60)
	return w
}

// changes contains possible changes to the declaration of a cluster.
var changes = map[string]func(*decide.Declared){
	"grow":         func(d *decide.Declared) { d.Replicas = 5 },
	"shrink":       func(d *decide.Declared) { d.Replicas = 1 },
	"roll":         func(d *decide.Declared) { d.SpecHash = "h2" },
	"upgrade":      func(d *decide.Declared) { d.Version = "3.7.3" },
	"downgrade":    func(d *decide.Declared) { d.Version = "3.5.35" },
	"stop":         func(d *decide.Declared) { d.Lifecycle = decide.Stopped },
	"fewer, newer": func(d *decide.Declared) { d.Replicas, d.Version = 1, "3.7.3" },
	"several":      func(d *decide.Declared) { d.Replicas, d.SpecHash, d.Version = 5, "h2", "3.7.3" },
}

func planOf(w *simulate.World) report.Report {
	entry := report.Cluster{Namespace: "n", Name: "a", State: w.Observe()}
	entry.Decision = decide.Decide(entry.State)
	if ahead := forecast.Of(entry.State); len(ahead.Steps) > 0 {
		entry.Road = &ahead
	}
	return report.Report{Planned: true, Revision: "main@sha1:abc", Clusters: []report.Cluster{entry}}
}

// run runs passes as long as their actions are approved. It returns the reason why an action was refused, if any, and
// the last decision.
func run(w *simulate.World, a approval.Approval, meanwhile func(pass int)) (refused string, end decide.Decision) {
	for pass := range 300 {
		meanwhile(pass)
		s := w.Observe()
		d := decide.Decide(s)
		if d.Verdict == decide.Act {
			if why := a.Refuses(key, s, d.Action); why != "" {
				return why, approval.Refused(d, why)
			}
			w.Pass(simulate.NoCrash)
			a.Taken(key, s, d.Action)
		} else {
			w.Pass(simulate.NoCrash)
		}
		if d.Verdict == decide.Done || d.Verdict == decide.Block {
			return "", d
		}
		w.Tick()
	}
	return "no end", decide.Decision{}
}

func never(int) {}

// TestApprovedPlanCompletes checks that a run completes the approved forecast, regardless of how long pods take to
// start and which member is the leader.
func TestApprovedPlanCompletes(t *testing.T) {
	for name, change := range changes {
		for seed := range uint64(12) {
			w := world(seed)
			change(&w.Declared)
			plan := planOf(w)
			if len(plan.Clusters[0].Road.Steps) == 0 {
				t.Fatalf("%s: nothing is planned", name)
			}
			if refused, end := run(w, approval.Of(plan), never); refused != "" || end.Verdict != decide.Done {
				t.Errorf("%s, seed %d: %s; it ends with %s", name, seed, refused, end)
			}
		}
	}
}

// TestUnplannedActionNeedsNewApproval checks that a member that loses its volume during the run is not replaced without
// a new approval.
func TestUnplannedActionNeedsNewApproval(t *testing.T) {
	w := world(0)
	w.Declared.SpecHash = "h2"
	refused, end := run(w, approval.Of(planOf(w)), func(pass int) {
		if pass == 3 {
			w.LoseVolume(0)
		}
	})
	if end.Rule != approval.Rule || end.Verdict != decide.Block || !strings.Contains(refused, "create and approve a new plan") {
		t.Errorf("%s: %s", end, refused)
	}
	if !strings.Contains(end.Message, "RemoveMember") {
		t.Errorf("it does not report what would be next: %s", end.Message)
	}
	if again, end := run(w, approval.Of(planOf(w)), never); again != "" || end.Verdict != decide.Done {
		t.Errorf("with a new plan: %s, %s", again, end)
	}
}

// TestPlanApprovesOnlyItsOwnActions checks that a plan does not approve actions on a cluster without a forecast, or
// actions that are not in the cluster's forecast.
func TestPlanApprovesOnlyItsOwnActions(t *testing.T) {
	w := world(0)
	nothing := approval.Of(planOf(w))
	w.Declared.Replicas = 5
	if refused, _ := run(w, nothing, never); !strings.Contains(refused, "has no actions for this cluster") {
		t.Errorf("got %q", refused)
	}
	plan, s := approval.Of(planOf(w)), w.Observe()
	if refused := plan.Refuses(key, s, decide.StartRollout{}); !strings.Contains(refused, "the next action in the approved plan is AddLearner a-3") {
		t.Errorf("got %q", refused)
	}
	if refused, _ := run(w, plan, never); refused != "" {
		t.Errorf("got %q", refused)
	}
	if refused := plan.Refuses(key, w.Observe(), decide.StartRollout{}); !strings.Contains(refused, "has no more actions") {
		t.Errorf("got %q", refused)
	}
}

// TestPlanDoesNotApproveRecreatedCluster checks that a plan does not approve actions on a different cluster that was
// created under the same name after the plan.
func TestPlanDoesNotApproveRecreatedCluster(t *testing.T) {
	w := world(0)
	w.Declared.Replicas = 5
	plan, s := approval.Of(planOf(w)), w.Observe()
	d := decide.Decide(s)
	if why := plan.Refuses(key, s, d.Action); why != "" {
		t.Fatal(why)
	}
	s.Record.Token = "another"
	for _, a := range []decide.Action{d.Action, decide.ApplyObjects{}} {
		if why := plan.Refuses(key, s, a); !strings.Contains(why, "a deleted cluster of the same name") {
			t.Errorf("%s: %q", a, why)
		}
	}
}

// TestNeverRestart checks that actions that restart, stop or remove something are refused, and that actions that only
// add members are approved.
func TestNeverRestart(t *testing.T) {
	for name, change := range changes {
		w := world(1)
		before := w.Observe()
		change(&w.Declared)
		refused, end := run(w, approval.NeverRestart{}, never)
		if (refused == "") != (name == "grow") {
			t.Errorf("%s: %q, %s", name, refused, end)
		}
		for _, r := range before.Replicas {
			if later := w.Observe().Replica(r.Ordinal); later.PodUID != r.PodUID || later.VolumeUID != r.VolumeUID {
				t.Errorf("%s: a-%d was %+v and is %+v", name, r.Ordinal, r, later)
			}
		}
	}
	var refused []string
	for _, a := range decide.Actions() {
		if (approval.NeverRestart{}).Refuses(key, world(0).Observe(), a) != "" {
			refused = append(refused, decide.KindOf(a))
		}
	}
	want := []string{"CancelDowngrade", "DeleteObjects", "DeleteVolume", "DiscardBackup", "EnableDowngrade", "FinishRecovery",
		"MoveLeader", "RemoveMember", "RestartReplica", "StartRecovery", "StartRollout", "StopPods", "StopRecovery", "StopReplicas", "StopRestore"}
	slices.Sort(refused)
	if !slices.Equal(refused, want) {
		t.Errorf("%q are refused, want %q", refused, want)
	}
}

// TestDefragmentationIsApproved checks that a run that must not restart members may defragment all of them, including
// the leader, and that an approved plan remains valid whether the maintenance window is open or closed.
func TestDefragmentationIsApproved(t *testing.T) {
	w := world(0)
	w.Declared.Defragmentation = decide.Defragmentation{MinFreePercent: 45, MinFree: 1 << 20, Windowed: true}
	for n := range 3 {
		w.Fragment(n)
	}
	if refused, end := run(w.Clone(), approval.NeverRestart{}, never); refused != "" || end.Verdict != decide.Done {
		t.Errorf("%q, %s", refused, end)
	}
	leads := decide.MoveLeader{From: 1, To: 2}
	if (approval.NeverRestart{}).Refuses(key, w.Observe(), leads) == "" {
		t.Errorf("%s is approved, although it does not precede a defragmentation", leads)
	}
	w.Declared.Replicas = 5
	plan := approval.Of(planOf(w))
	s := w.Observe()
	for _, s.WindowClosed = range []bool{false, true} {
		if why := plan.Refuses(key, s, decide.Decide(s).Action); why != "" {
			t.Errorf("window closed %t: %s", s.WindowClosed, why)
		}
	}
}

// TestDigestCoversApprovedContent checks that the digest depends on everything that a plan approves and on nothing
// else.
func TestDigestCoversApprovedContent(t *testing.T) {
	plan := func(change func(*simulate.World, *report.Report)) string {
		w := world(0)
		w.Declared.Replicas = 5
		r := planOf(w)
		if change != nil {
			change(w, &r)
		}
		return r.Digest()
	}
	digest := plan(nil)
	if !strings.HasPrefix(digest, "sha256:") || len(digest) != len("sha256:")+64 || plan(nil) != digest {
		t.Fatalf("%q, and again %q", digest, plan(nil))
	}
	same := plan(func(_ *simulate.World, r *report.Report) {
		r.Clusters = append(r.Clusters, report.Cluster{Namespace: "n", Name: "b"}) // a cluster without actions
		r.Clusters[0].Warnings = []string{"w"}
	})
	if same != digest {
		t.Errorf("%q, want %q", same, digest)
	}
	for what, change := range map[string]func(*simulate.World, *report.Report){
		"revision": func(_ *simulate.World, r *report.Report) { r.Revision = "main@sha1:abd" },
		"cluster":  func(_ *simulate.World, r *report.Report) { r.Clusters[0].Name = "b" },
		"ID":       func(_ *simulate.World, r *report.Report) { r.Clusters[0].State.Record.ClusterID++ },
		"founding": func(_ *simulate.World, r *report.Report) { r.Clusters[0].State.Record.Token = "other" },
		"end":      func(_ *simulate.World, r *report.Report) { r.Clusters[0].Road.End.Verdict = decide.Block },
		"open":     func(_ *simulate.World, r *report.Report) { r.Clusters[0].Road.Open = true },
		"options":  func(w *simulate.World, r *report.Report) { w.Declared.SpecHash = "h2"; *r = planOf(w) },
		"image":    func(_ *simulate.World, r *report.Report) { r.Clusters[0].State.Declared.SpecHash = "h3" },
		"spec":     func(_ *simulate.World, r *report.Report) { r.Clusters[0].State.Declared.Digest = "d" },
		"restore":  func(_ *simulate.World, r *report.Report) { r.Clusters[0].State.Declared.Restore.Digest = "d" },
		"steps":    func(w *simulate.World, r *report.Report) { w.Declared.Replicas = 4; *r = planOf(w) },
	} {
		if other := plan(change); other == digest || other == "" {
			t.Errorf("another %s has the digest %q", what, other)
		}
	}
	for _, revision := range []string{"directory", "main@sha1:abc directory"} {
		if got := plan(func(_ *simulate.World, r *report.Report) { r.Revision = revision }); got != "" {
			t.Errorf("for %s, whose files may have changed, it is %q", revision, got)
		}
	}
	if got := plan(func(_ *simulate.World, r *report.Report) { r.Revision = "directory@sha1:abc" }); got == "" {
		t.Error("a plan of a branch of that name has no digest")
	}
	if got := plan(func(_ *simulate.World, r *report.Report) { r.Compared = &report.Comparison{} }); got != "" {
		t.Errorf("without observation, it is %q", got)
	}
	if got := planOf(world(0)).Digest(); got != "" {
		t.Errorf("with nothing to do, it is %q", got)
	}
}

// TestSameKindActionsRunInAnyOrder checks that consecutive actions of the same kind may be executed in any order, but
// each of them only once. The same applies to actions that add or promote members.
func TestSameKindActionsRunInAnyOrder(t *testing.T) {
	s := world(0).Observe()
	add := func(ordinal int) decide.Action { return decide.AddLearner{Ordinal: ordinal} }
	ready := func(name string) decide.Action { return decide.PromoteLearner{Name: name} }
	last := decide.RestartReplica{Ordinal: 0}
	for _, order := range [][]decide.Action{
		{add(3), add(4), ready("a-4"), ready("a-3")},
		{add(3), ready("a-3"), add(4), ready("a-4")},
	} {
		ahead := &forecast.Forecast{}
		for _, a := range []decide.Action{add(3), decide.Seal{}, add(4), ready("a-3"), decide.Seal{}, ready("a-4"), last} {
			ahead.Steps = append(ahead.Steps, forecast.Step{Action: a, What: s.DescribeAction(a)})
		}
		plan := approval.Of(report.Report{Clusters: []report.Cluster{{Namespace: "n", Name: "a", State: s, Road: ahead}}})
		for _, a := range order {
			if why := plan.Refuses(key, s, a); why != "" {
				t.Errorf("%s: %s", a, why)
			}
			plan.Taken(key, s, a)
			if why := plan.Refuses(key, s, a); !strings.Contains(why, "the next action in the approved plan is") {
				t.Errorf("%s again: %q", a, why)
			}
		}
		if why := plan.Refuses(key, s, last); why != "" {
			t.Error(why)
		}
	}
}

// TestEditedDeclarationIsRefused checks that, at every step, a declaration that differs from the approved declaration
// in any field is refused, even if it changes between two passes of a run. With --source cluster, no revision pins the
// declarations.
func TestEditedDeclarationIsRefused(t *testing.T) {
	w := world(0)
	w.Declared.Replicas, w.Declared.SpecHash = 4, "h2"
	plan, s := approval.Of(planOf(w)), w.Observe()
	next := decide.Decide(s).Action
	for _, a := range []decide.Action{next, decide.ApplyObjects{}, decide.Seal{}, decide.MoveLeader{}} {
		if why := plan.Refuses(key, s, a); why != "" {
			t.Fatalf("%s as approved: %s", a, why)
		}
		for i := range reflect.TypeFor[decide.Declared]().NumField() {
			edited := s
			edit(reflect.ValueOf(&edited.Declared).Elem().Field(i))
			name := reflect.TypeFor[decide.Declared]().Field(i).Name
			why := plan.Refuses(key, edited, a)
			if !strings.Contains(why, "has changed since the plan was approved") || strings.HasPrefix(why, "the spec has") != (name == "Digest") {
				t.Errorf("%s with another %s: %q", a, name, why)
			}
		}
	}
	if refused, end := run(w, plan, func(pass int) {
		if pass == 1 {
			w.Declared.Digest = "edited"
		}
	}); end.Rule != approval.Rule || !strings.Contains(refused, "the spec has changed") {
		t.Errorf("%q; it ends with %s", refused, end)
	}
}

// edit changes the value of a field.
func edit(field reflect.Value) {
	switch field.Kind() { //nolint:exhaustive // any other kind of field fails the test
	case reflect.String:
		field.SetString(field.String() + "x")
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Int, reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Slice:
		field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
	case reflect.Struct:
		edit(field.Field(0))
	case reflect.Uint64:
		field.SetUint(field.Uint() + 1)
	}
}
