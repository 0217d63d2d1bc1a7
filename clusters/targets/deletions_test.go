package targets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/shard"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// doomed returns the spec of a cluster that will be deleted with its data.
func doomed() v1alpha1.EtcdClusterSpec {
	return v1alpha1.EtcdClusterSpec{Lifecycle: v1alpha1.LifecycleDeleted, Storage: v1alpha1.StorageSpec{Retention: v1alpha1.RetentionDelete}}
}

// TestBeginsDeletion checks that only deletions that this run would start are counted, and not deletions that an
// earlier run has started.
func TestBeginsDeletion(t *testing.T) {
	kept, stopped, suspended := doomed(), doomed(), doomed()
	kept.Storage.Retention, stopped.Lifecycle, suspended.Suspend = v1alpha1.RetentionRetain, v1alpha1.LifecycleStopped, true
	custom := func(spec v1alpha1.EtcdClusterSpec, action string, observed int64) *v1alpha1.EtcdCluster {
		c := &v1alpha1.EtcdCluster{Spec: spec, Status: v1alpha1.EtcdClusterStatus{Rule: action, ObservedGeneration: observed}}
		c.Generation = 2
		return c
	}
	for _, test := range []struct {
		name   string
		spec   v1alpha1.EtcdClusterSpec
		change func(*Target)
		custom *v1alpha1.EtcdCluster
		live   bool
		// nothing specifies that only the custom resource is left.
		nothing, want bool
	}{
		{name: "cluster was stopped", spec: doomed(), custom: custom(stopped, "", 2), want: true},
		{name: "cluster was deleted, data kept", spec: doomed(), custom: custom(kept, "NothingRuns", 2), want: true},
		{name: "deletion was suspended", spec: doomed(), custom: custom(suspended, "Suspended", 2), want: true},
		{name: "custom resource is missing", spec: doomed(), want: true},
		{name: "deletion has started", spec: doomed(), custom: custom(doomed(), "Stop", 2)},
		{name: "data is kept", spec: kept, custom: custom(stopped, "", 2)},
		{name: "cluster is suspended", spec: suspended, custom: custom(stopped, "", 2)},
		{name: "only the custom resource is left", spec: doomed(), custom: custom(stopped, "", 2), nothing: true},
		{name: "cluster is orphaned", spec: doomed(), change: func(t *Target) { t.Orphaned = "gone" }, custom: custom(stopped, "", 2)},
		{name: "declaration has problems", spec: doomed(), change: func(t *Target) { t.Problems = []string{"no"} }, custom: custom(stopped, "", 2)},
		{name: "live, new generation not yet observed", live: true, spec: doomed(), custom: custom(doomed(), "Stop", 1), want: true},
		{name: "live, waiting", live: true, spec: doomed(), custom: custom(doomed(), "InvalidSpec", 2), want: true},
		{name: "live, deletion has started", live: true, spec: doomed(), custom: custom(doomed(), "Stop", 2)},
	} {
		d := Target{Cluster: v1alpha1.EtcdCluster{Spec: test.spec}}
		if test.change != nil {
			test.change(&d)
		}
		own := &inventory.Listed{Custom: test.custom}
		if !test.nothing {
			own.Claims = 1
		}
		if got := d.beginsDeletion(own, test.live); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// TestDeletionsAreLimited checks that the limit applies to all passes of a process, and that waiting clusters are kept
// as last applied.
func TestDeletionsAreLimited(t *testing.T) {
	one := 1
	l := &Deletions{Most: &one}
	owned, all := inventory.ByCluster{}, 3
	pass := func(live bool) (waiting []string) {
		var targets []Target
		for _, name := range []string{"a", "b", "c"} {
			d := Target{Cluster: v1alpha1.EtcdCluster{Spec: doomed()}, Applied: map[string]any{"spec": map[string]any{}}, Warnings: []string{"w"}, Source: "ns"}
			d.Cluster.Name, d.Cluster.Namespace = name, "ns"
			targets = append(targets, d)
		}
		for _, d := range l.Limit(targets, owned, live) {
			if len(d.Problems) == 0 {
				continue
			}
			waiting = append(waiting, d.Cluster.Name)
			if d.Problems[0] == "" || !strings.Contains(d.Problems[0], fmt.Sprintf("%d clusters in its %s are newly", all, map[bool]string{false: "source", true: "namespace"}[live])) || !strings.Contains(d.Problems[0], fmt.Sprintf("raise --max-deletions to %d", all)) {
				t.Errorf("%s: %q", d.Key(), d.Problems)
			}
			if !live && (d.Cluster.Spec.Lifecycle != v1alpha1.LifecycleRunning || d.Applied != nil || len(d.Warnings) != 1) {
				t.Errorf("%s is not kept as last applied: %+v", d.Key(), d)
			}
		}
		return waiting
	}
	for _, name := range []string{"a", "b", "c"} {
		owned.At("ns", name).Custom = &v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{Lifecycle: v1alpha1.LifecycleRunning}}
		owned.At("ns", name).Pods = 1
		owned.At("ns", name).Custom.Name, owned.At("ns", name).Custom.Namespace = name, "ns"
	}
	for range 2 {
		if got := pass(false); !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("%q wait", got)
		}
		owned.At("ns", "a").Custom.Spec = doomed()
	}
	for _, name := range []string{"b", "c"} {
		owned.At("ns", name).Custom.Spec = doomed()
	}
	if got := pass(true); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("%q wait while the custom resources are the source", got)
	}
	stalled := metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "ForeignObjects"}
	meta.SetStatusCondition(&owned.At("ns", "a").Custom.Status.Conditions, stalled)
	if got := pass(true); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("%q wait while the first deletion is blocked", got)
	}
	for _, name := range []string{"a", "b", "c"} {
		owned.At("ns", name).Custom.Spec, owned.At("ns", name).Custom.Status = v1alpha1.EtcdClusterSpec{Lifecycle: v1alpha1.LifecycleRunning}, v1alpha1.EtcdClusterStatus{}
	}
	owned.At("ns", "a").Pods = 0 // a has been deleted, but no other deletion may start until counting restarts
	for _, want := range [][]string{{"b", "c"}, {"c"}} {
		if got := pass(false); !slices.Equal(got, want) {
			t.Errorf("%q wait once the first is deleted, want %q", got, want)
		}
		l.places = nil
		all = 2
	}
	l.Most = nil
	if got := pass(false); got != nil {
		t.Errorf("%q wait without a limit", got)
	}
}

// TestDeletionLimitAppliesPerNamespace checks that, if the custom resources are the source, a user of one namespace
// cannot use up the places of another namespace.
func TestDeletionLimitAppliesPerNamespace(t *testing.T) {
	one := 1
	for _, l := range []*Deletions{{Most: &one}, {Most: &one, Round: time.Hour}} {
		owned := inventory.ByCluster{}
		pass := func() (waiting []string) {
			var targets []Target
			for _, key := range []string{"a/1", "a/2", "b/1", "b/2"} {
				target := Target{Cluster: v1alpha1.EtcdCluster{Spec: doomed()}}
				target.Cluster.Namespace, target.Cluster.Name, _ = strings.Cut(key, "/")
				own := owned.At(target.Cluster.Namespace, target.Cluster.Name)
				if own.Custom == nil {
					own.Custom, own.Pods = target.Cluster.DeepCopy(), 1
				}
				targets = append(targets, target)
			}
			for _, target := range l.Limit(targets, owned, true) {
				if len(target.Problems) > 0 {
					waiting = append(waiting, target.Key().String())
				}
			}
			return waiting
		}
		for range 2 {
			if got := pass(); !slices.Equal(got, []string{"a/2", "b/2"}) {
				t.Errorf("%q wait", got)
			}
		}
		owned.At("a", "1").Custom.Status.Rule = "Stop" // started
		if got := pass(); !slices.Equal(got, []string{"a/2", "b/2"}) {
			t.Errorf("%q wait once the first deletion has started", got)
		}
	}
}

// TestBlockedDeletionsYieldTheirPlace checks that a deletion that a pass has found blocked does not take the place of a
// deletion that could start.
func TestBlockedDeletionsYieldTheirPlace(t *testing.T) {
	one := 1
	var l *Deletions
	owned := inventory.ByCluster{}
	at := func(name string) *v1alpha1.EtcdCluster { return owned.At("ns", name).Custom }
	for _, name := range []string{"a", "b", "c"} {
		owned.At("ns", name).Custom = &v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{Lifecycle: v1alpha1.LifecycleRunning}}
		owned.At("ns", name).Pods = 1
		at(name).Name, at(name).Namespace = name, "ns"
	}
	stalls := func(name, rule string) {
		l.FoundBlocked(inventory.Key{Namespace: "ns", Name: name})
		at(name).Status.Rule = rule
		meta.SetStatusCondition(&at(name).Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: rule})
	}
	waiting := func() (waits []string) {
		var targets []Target
		for _, name := range []string{"a", "b", "c"} {
			d := Target{Cluster: v1alpha1.EtcdCluster{Spec: doomed()}, Applied: map[string]any{}}
			d.Cluster.Name, d.Cluster.Namespace = name, "ns"
			targets = append(targets, d)
		}
		for _, d := range l.Limit(targets, owned, false) {
			if len(d.Problems) > 0 {
				waits = append(waits, d.Cluster.Name)
			}
		}
		return waits
	}
	for _, step := range []struct {
		name   string
		change func()
		newRun bool
		want   []string
	}{
		{"first cluster starts", func() {}, true, []string{"b", "c"}},
		{"first is blocked, second starts", func() { stalls("a", "ForeignObjects"); stalls("b", "InvalidSpec"); stalls("c", "InvalidSpec") }, false, []string{"a", "c"}},
		{"same result in a new run", func() {}, true, []string{"a", "c"}},
		{"first is unblocked, second has started", func() { stalls("a", "InvalidSpec"); at("b").Spec = doomed() }, false, []string{"a", "c"}},
		{"started deletion keeps its place when blocked", func() { stalls("b", "Stop") }, false, []string{"a", "c"}},
		{"next run starts another deletion", func() {}, true, []string{"c"}},
		{"all are blocked, next one is tried", func() { stalls("a", "ForeignObjects"); stalls("c", "InvalidSpec") }, false, []string{"a"}},
	} {
		step.change()
		if step.newRun {
			l = &Deletions{Most: &one}
		}
		if got := waiting(); !slices.Equal(got, step.want) {
			t.Errorf("%s: %q wait, want %q", step.name, got, step.want)
		}
	}
}

// TestBlockedDeletionsAreRetriedInTurn checks that blocked deletions never prevent an unblocked deletion from starting,
// whatever the process remembers. Each blocked deletion is retried, because only a retry can show that it is no longer
// blocked.
func TestBlockedDeletionsAreRetriedInTurn(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	one := 1
	for newRuns, want := range map[bool]string{true: "a b c d a b d a b", false: "a b c"} { // one per run
		owned := inventory.ByCluster{}
		for _, name := range names {
			owned.At("ns", name).Custom = &v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{Lifecycle: v1alpha1.LifecycleRunning}}
			owned.At("ns", name).Pods = 1
		}
		l := &Deletions{Most: &one}
		var turns []string
		for range 9 {
			if newRuns {
				l = &Deletions{Most: &one}
			}
			turns = append(turns, turn(l, owned, names, []string{"a", "b", "d"}))
		}
		if strings.TrimSpace(strings.Join(turns, " ")) != want {
			t.Errorf("with new runs %t: turns %q, want %q", newRuns, turns, want)
		}
	}
}

// turn applies the limit to clusters whose deletion has not started, writes their status, and returns the cluster that
// was given the place.
func turn(l *Deletions, owned inventory.ByCluster, names, blocked []string) string {
	var targets []Target
	for _, name := range names {
		t := Target{Cluster: v1alpha1.EtcdCluster{Spec: doomed()}, Applied: map[string]any{}}
		t.Cluster.Name, t.Cluster.Namespace = name, "ns"
		targets = append(targets, t)
	}
	var begins string
	for i, t := range l.Limit(targets, owned, false) {
		custom := owned.At("ns", names[i]).Custom
		custom.Name, custom.Namespace = names[i], "ns"
		stalled := metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionFalse, Reason: "Stop"}
		switch waits := len(t.Problems) > 0; {
		case waits:
			stalled.Status, stalled.Reason, stalled.Message = metav1.ConditionTrue, "InvalidSpec", t.Problems[0]
		case slices.Contains(blocked, names[i]):
			begins = names[i]
			l.FoundBlocked(t.Key())
			stalled.Status, stalled.Reason, stalled.Message = metav1.ConditionTrue, "ForeignObjects", "Service "+names[i]+" exists but was not created by Quorate for this cluster"
		case !goesWithData(custom.Spec):
			begins = names[i]
			custom.Spec = doomed()
		}
		meta.SetStatusCondition(&custom.Status.Conditions, stalled)
	}
	return begins
}

// TestDeletionLimitAppliesPerSource checks that a source's places are not taken by clusters of another source, and
// that those clusters are not reported.
func TestDeletionLimitAppliesPerSource(t *testing.T) {
	one, owned := 1, inventory.ByCluster{}
	var targets []Target
	for _, name := range []string{"evil/a", "evil/b", "good/a"} {
		d := Target{Cluster: v1alpha1.EtcdCluster{Spec: doomed()}}
		d.Cluster.Namespace, d.Cluster.Name, _ = strings.Cut(name, "/")
		d.Source = d.Cluster.Namespace
		owned.At(d.Cluster.Namespace, d.Cluster.Name).Pods = 1
		targets = append(targets, d)
	}
	for i, t2 := range (&Deletions{Most: &one}).Limit(targets, owned, false) {
		if problems := strings.Join(t2.Problems, ""); (problems != "") != (i == 1) || i == 1 && !strings.Contains(problems, "2 clusters in its source") {
			t.Errorf("%s: %q", t2.Key(), problems)
		}
	}
}

// TestGrantedDeletionKeepsItsPlace checks that a cluster keeps its place even if its last status, written before the
// place was granted, reports it as blocked. A pass may already be acting on the cluster.
func TestGrantedDeletionKeepsItsPlace(t *testing.T) {
	one, owned := 1, inventory.ByCluster{}
	for _, name := range []string{"b", "d"} {
		custom := &v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{Lifecycle: v1alpha1.LifecycleRunning}}
		meta.SetStatusCondition(&custom.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "ForeignObjects"})
		owned.At("ns", name).Custom, owned.At("ns", name).Pods = custom, 1
		custom.Name, custom.Namespace = name, "ns"
	}
	l, waits := &Deletions{Most: &one}, []string(nil)
	for range 3 {
		var targets []Target
		for _, name := range []string{"b", "d"} {
			d := Target{Cluster: v1alpha1.EtcdCluster{Spec: doomed()}}
			d.Cluster.Name, d.Cluster.Namespace = name, "ns"
			targets = append(targets, d)
		}
		for _, d := range l.Limit(targets, owned, false) {
			if len(d.Problems) > 0 {
				waits = append(waits, d.Cluster.Name)
			}
		}
	}
	if !slices.Equal(waits, []string{"d", "d", "d"}) {
		t.Errorf("%q wait", waits)
	}
}

// TestShardsGrantSameDeletions checks that all shards grant the same places. While one shard deletes a cluster,
// clusters of the other shards have to wait, unless that deletion is blocked.
func TestShardsGrantSameDeletions(t *testing.T) {
	one, owned, of := 1, inventory.ByCluster{}, 2
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		custom := &v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{Lifecycle: v1alpha1.LifecycleRunning}}
		custom.Name, custom.Namespace = name, "ns"
		owned.At("ns", name).Custom, owned.At("ns", name).Pods = custom, 1
	}
	begins := func(l *Deletions) (own, others []string) {
		var targets []Target
		for _, name := range names {
			d := Target{Cluster: v1alpha1.EtcdCluster{Spec: doomed()}}
			d.Cluster.Name, d.Cluster.Namespace = name, "ns"
			targets = append(targets, d)
		}
		for _, d := range l.Limit(targets, owned, false) {
			switch {
			case len(d.Problems) > 0 || goesWithData(owned.Of(d.Key()).Custom.Spec):
			case l.Shard.Owns(d.Key().String()):
				own = append(own, d.Cluster.Name)
			default:
				others = append(others, d.Cluster.Name)
			}
		}
		return own, others
	}
	first := ""
	for i := range of {
		own, others := begins(&Deletions{Most: &one, Shard: shard.Shard{Index: i, Of: of}})
		if all := slices.Concat(own, others); len(all) != 1 || first != "" && all[0] != first {
			t.Fatalf("shard %d lets %q begin; one before it %q", i, all, first)
		} else {
			first = all[0]
		}
	}
	begun := owned.At("ns", first).Custom
	begun.Spec = doomed()
	for i := range of {
		part := shard.Shard{Index: i, Of: of}
		own, others := begins(&Deletions{Most: &one, Shard: part}) // as in a run that has just started
		if mine := part.Owns("ns/" + first); mine != (len(own)+len(others) == 1) {
			t.Errorf("shard %s lets %q and %q begin while %s is being deleted", part, own, others, first)
		}
	}
	meta.SetStatusCondition(&begun.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "ForeignObjects"})
	for i := range of {
		if own, others := begins(&Deletions{Most: &one, Shard: shard.Shard{Index: i, Of: of}}); len(own)+len(others) != 1 {
			t.Errorf("shard %d lets %q and %q begin while %s is blocked", i, own, others, first)
		}
	}
}
