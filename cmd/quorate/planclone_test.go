package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestPlanOfCloneIsApprovedAfterPush checks that a plan of a clone, created before a push, can be approved for a run
// after the push, as in "make demo". The run reads the repository to which the clone was pushed.
func TestPlanOfCloneIsApprovedAfterPush(t *testing.T) {
	f := newFleet(t)
	bare, clone, file := filepath.Join(f.dir, "clusters.git"), filepath.Join(f.dir, "checkout"), filepath.Join(f.dir, "plan.json")
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@localhost"}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet", "--bare", "--initial-branch", "main", bare)
	git("clone", "--quiet", bare, clone)
	git("-C", clone, "symbolic-ref", "HEAD", "refs/heads/main")
	f.declare("a")
	if err := os.Rename(filepath.Join(f.dir, "clusters"), filepath.Join(clone, "clusters")); err != nil {
		t.Fatal(err)
	}
	git("-C", clone, "add", ".")
	git("-C", clone, "commit", "--quiet", "--message", "Declare a cluster")
	code, said := f.quorate("plan", "--source", clone, "--output", "markdown", "--output", "json="+file)
	plan, err := os.ReadFile(file)
	digest := regexp.MustCompile(`(?m)^  "digest": "(sha256:[0-9a-f]*)"`).FindSubmatch(plan)
	if code != exitOK || err != nil || digest == nil {
		t.Fatalf("exit code %d, %v: %s", code, err, said)
	}
	git("-C", clone, "push", "--quiet", "origin", "HEAD:main")
	approved := func(digest string) int {
		code, said = f.quorate("run", "--source", bare, "--etcd-access", "direct", "--until-converged", "--timeout", "5s", "--approve", "plan="+digest)
		return code
	}
	if code := approved("sha256:" + string(digest[1][len("sha256:")+1:]) + "0"); code != exitBlocked {
		t.Errorf("with another digest: exit code %d: %s", code, said)
	}
	if code := approved(string(digest[1])); code != exitNotConverged { // the cluster has no pods
		t.Errorf("exit code %d: %s", code, said)
	}
}
