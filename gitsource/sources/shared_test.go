package sources

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
)

// TestSourceKeyDistinguishesPathAndBranch checks that two sources share a read only if they read the same data.
func TestSourceKeyDistinguishesPathAndBranch(t *testing.T) {
	read := map[string]string{}
	for _, path := range []string{"a", "b"} {
		for _, branch := range []string{"", "dev", "main"} {
			s := Source{Location: "repository", Path: path, Selector: refs.Selector{Branch: branch}}
			what, key := fmt.Sprintf("%s of %s", path, branch), result{source: s}.whatIsRead()
			if before, same := read[key]; same {
				t.Errorf("%q shares a read with %q", what, before)
			}
			read[key] = what
		}
	}
}

// TestSharedSourceIsReadOnce checks that a source is read once even if it is requested several times, and that later
// requests return an error if the read panicked.
func TestSharedSourceIsReadOnce(t *testing.T) {
	var times atomic.Int32
	shared := &Shared{}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			got, err := shared.Once("a", func() (gitsource.Desired, error) {
				times.Add(1)
				return gitsource.Desired{}, errors.New("no")
			})
			if err == nil || len(got.Clusters) > 0 {
				t.Error(got, err)
			}
		})
	}
	if all.Wait(); times.Load() != 1 {
		t.Errorf("the source is read %d times", times.Load())
	}
	declared := manifests.Declared{Applied: map[string]any{"spec": map[string]any{"replicas": int64(3)}}, Warnings: []string{"w"}}
	declared.Cluster.Labels = map[string]string{"a": "b"}
	for range 2 { // callers may change the returned value
		got, err := shared.Once("c", func() (gitsource.Desired, error) {
			return gitsource.Desired{Declarations: manifests.Declarations{Clusters: []manifests.Declared{declared}}}, nil
		})
		if err != nil || len(got.Clusters) != 1 || fmt.Sprint(got.Clusters[0].Cluster.Labels, got.Clusters[0].Applied, got.Clusters[0].Warnings) != "map[a:b] map[spec:map[replicas:3]] [w]" {
			t.Fatal(got, err)
		}
		c := &got.Clusters[0]
		c.Cluster.Labels["a"], c.Applied["spec"], c.Warnings[0] = "c", nil, "x"
	}
	func() {
		defer func() { _ = recover() }() // the reader recovers as well
		_, _ = shared.Once("b", func() (gitsource.Desired, error) { panic("x") })
	}()
	if _, err := shared.Once("b", nil); err == nil {
		t.Error("a read that panicked returns no error")
	}
}

// TestPassesDoNotShareWarnings checks that warnings that one pass adds to a shared declaration do not affect other
// passes.
func TestPassesDoNotShareWarnings(t *testing.T) {
	declared := manifests.Declared{Warnings: append(make([]string, 0, 4), "w")}
	all := []result{{desired: gitsource.Desired{Declarations: manifests.Declarations{Clusters: []manifests.Declared{declared}}}}}
	one, other := join(all).Clusters[0].Warnings, join(all).Clusters[0].Warnings
	one, other = append(one, "one"), append(other, "other")
	if one[1] != "one" || other[1] != "other" {
		t.Errorf("warnings are shared: %q and %q", one, other)
	}
}
