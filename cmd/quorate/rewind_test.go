package main

import (
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// A source is not taken back to where it was before, whatever it declares there: here none of the clusters that live.
func TestRewoundToOtherClusters(t *testing.T) {
	w := newTenants(t, "a", "b")
	w.made("a/one", "a/two", "b/one")
	before := w.push("a", "a/zero")
	w.push("b", "b/one")
	w.push("a", "a/one", "a/two")
	last := w.push("a", "a/one", "a/two", "a/three")
	if got := w.run(w.sources("a", "b")...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	w.git("a", "reset", "--quiet", "--hard", before)
	next := w.push("b", "b/one", "b/two")
	for range 2 {
		got := w.run(w.sources("a", "b")...)
		for _, words := range []string{"main@sha1:" + before + " of " + w.repository("a"), "does not descend from main@sha1:" + last, "--allow-rewind", "push a commit on top"} {
			if !strings.Contains(got.out, words) {
				t.Errorf("%q is not in\n%s", words, got.out)
			}
		}
		if got.code != exitError || strings.Contains(got.out, "a/zero") {
			t.Errorf("what was rewound counts: %d\n%s", got.code, got.out)
		}
		if removed := w.condition("a/one", v1alpha1.ConditionRemovalHeld); removed != "" {
			t.Errorf("nothing is known of what is removed: %s", removed)
		}
	}
	if c := w.cluster("b/one"); c.Status.DeclaredRevision != "main@sha1:"+next {
		t.Errorf("the other tenant is held up: %+v", c.Status)
	}
	// Once is enough, also for what is no longer declared.
	allowed := append(w.sources("a", "b"), "--allow-rewind")
	if got := w.run(allowed...); got.code != exitBlocked || !strings.Contains(got.out, "a/zero") {
		t.Errorf("%d\n%s", got.code, got.out)
	}
	if got := w.run(w.sources("a", "b")...); got.code != exitBlocked || strings.Contains(got.out, "is refused") {
		t.Errorf("%d\n%s", got.code, got.out)
	}
	w.git("a", "reset", "--quiet", "--hard", last)
	if got := w.run(w.sources("a", "b")...); got.code != exitOK {
		t.Errorf("on top of what was allowed: %d\n%s", got.code, got.out)
	}
}
