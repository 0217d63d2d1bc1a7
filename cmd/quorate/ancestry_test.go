package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/gitsource/gittest"
)

// TestNonFastForwardIsRefused checks that a source cannot be reset to an earlier revision, regardless of what that
// revision declares. Here, the earlier revision does not declare any of the existing clusters.
func TestNonFastForwardIsRefused(t *testing.T) {
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
		for _, words := range []string{"main@sha1:" + before + " of " + w.repository("a"), "does not descend from main@sha1:" + last, "--allow-non-fast-forward", "Push a commit on top"} {
			if !strings.Contains(got.out, words) {
				t.Errorf("%q is not in\n%s", words, got.out)
			}
		}
		if got.code != exitError || strings.Contains(got.out, "a/zero") {
			t.Errorf("a rewound revision counts: %d\n%s", got.code, got.out)
		}
		if removed := w.condition("a/one", v1alpha1.ConditionRemovalHeld); removed != "" {
			t.Errorf("the removal is not reported: %s", removed)
		}
	}
	if c := w.cluster("b/one"); c.Status.DeclaredRevision != "main@sha1:"+next {
		t.Errorf("the other tenant is delayed: %+v", c.Status)
	}
	// The flag is needed only once, even for clusters that are no longer declared.
	allowed := append(w.sources("a", "b"), "--allow-non-fast-forward")
	if got := w.run(allowed...); got.code != exitBlocked || !strings.Contains(got.out, "a/zero") {
		t.Errorf("%d\n%s", got.code, got.out)
	}
	if got := w.run(w.sources("a", "b")...); got.code != exitBlocked || strings.Contains(got.out, "is rejected") {
		t.Errorf("%d\n%s", got.code, got.out)
	}
	w.git("a", "reset", "--quiet", "--hard", last)
	if got := w.run(w.sources("a", "b")...); got.code != exitOK {
		t.Errorf("on top of the allowed revision: %d\n%s", got.code, got.out)
	}
}

// TestUnknownAncestryIsRefusedIfSignaturesRequired checks that unknown ancestry, as in a shallow clone, causes only a
// warning unless signatures are required, in which case the revision is refused.
func TestUnknownAncestryIsRefusedIfSignaturesRequired(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	w := newTenants(t, "a")
	w.made("a/one")
	key := filepath.Join(w.dir, "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Rename(key+".pub", key+".sshpub"); err != nil {
		t.Fatal(err)
	}
	push := func(declared ...string) string {
		w.push("a", declared...)
		w.git("a", "-c", "gpg.format=ssh", "-c", "user.signingkey="+key, "commit", "--quiet", "--amend", "--no-edit", "--gpg-sign")
		return w.git("a", "rev-parse", "HEAD")
	}
	signed := append(w.sources("a"), "--verify-keys", key+".sshpub")
	before := push("a/one")
	if got := w.run(signed...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	next := push("a/one", "a/two")
	full := w.repository("a") + "-full"
	if err := os.Rename(w.repository("a"), full); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--depth=1", "file://"+full, w.repository("a")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := w.run(signed...)
	why := "main@sha1:" + next + " of " + w.repository("a") + " is rejected: it must be signed, and it is not known whether it descends from main@sha1:" + before + ", which was applied last: "
	if got.code != exitError || !strings.Contains(got.out, why) || w.cluster("a/one").Status.SourceRevision != "main@sha1:"+before {
		t.Errorf("%d\n%s", got.code, got.out)
	}
	if said := w.condition("a/one", v1alpha1.ConditionSourceReady); !strings.HasPrefix(said, "SourceReady=False "+why) {
		t.Errorf("got %s", said)
	}
	got = w.run(w.sources("a")...)
	if got.code != exitOK || !strings.Contains(got.out, "warning cannot tell whether main@sha1:"+next+" of "+w.repository("a")+" descends from main@sha1:"+before) {
		t.Errorf("without keys: %d\n%s", got.code, got.out)
	}
}

// TestForcePushedRevisionThatVanishedIsRefused checks that a force-pushed revision is refused even if the source no
// longer contains it when its history is read.
func TestForcePushedRevisionThatVanishedIsRefused(t *testing.T) {
	w := newTenants(t, "a")
	w.made("a/one")
	root := w.push("a")
	last := w.push("a", "a/one")
	var served atomic.Int32
	git := (&gittest.Repository{T: t, Dir: w.repository("a")}).Handler()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && served.Add(1) == 2 {
			w.git("a", "reset", "--quiet", "--hard", last) // the author reverts the rewrite
		}
		git.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	source := []string{"--source", server.URL + "/.git"}
	if got := w.run(source...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	w.git("a", "reset", "--quiet", "--hard", root)
	rewritten := w.push("a", "a/one", "a/zero")
	served.Store(0)
	got := w.run(source...)
	if served.Load() < 2 || w.git("a", "rev-parse", "HEAD") != last {
		t.Fatalf("it was not rewritten again: %d", served.Load())
	}
	want := "main@sha1:" + rewritten + " of " + source[1] + " is rejected: the source no longer contains this revision"
	if got.code != exitError || !strings.Contains(got.out, want) || strings.Contains(got.out, "a/zero") {
		t.Errorf("%d\n%s", got.code, got.out)
	}
	if got := w.run(source...); got.code != exitOK {
		t.Errorf("the previous revision is refused: %d\n%s", got.code, got.out)
	}
}
