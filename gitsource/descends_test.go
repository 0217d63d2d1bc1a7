package gitsource

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/history"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

// grow adds commits to main, each with a file of the given size, and returns them.
func (r *repository) grow(commits, bytes int) []string {
	r.T.Helper()
	var input strings.Builder
	for i := range commits {
		from := ""
		if i == 0 {
			from = "from refs/heads/main^0\n"
		}
		fmt.Fprintf(&input, "commit refs/heads/main\ncommitter a <a@example.com> %d +0000\ndata 1\nx\n%sM 100644 inline file\ndata %d\n%0*d\n", 1800000000+i, from, bytes, bytes, i)
	}
	cmd := exec.CommandContext(r.T.Context(), "git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Stdin = r.Dir, strings.NewReader(input.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		r.T.Fatalf("%v\n%s", err, out)
	}
	return strings.Fields(r.Git("rev-list", "--reverse", fmt.Sprintf("--max-count=%d", commits), "main"))
}

func TestDescends(t *testing.T) {
	r := newRepository(t)
	root := r.Declare("root")
	r.Git("checkout", "--quiet", "-b", "side")
	side := r.Declare("side")
	r.Git("checkout", "--quiet", "main")
	before := r.Declare("before")
	r.Git("merge", "--quiet", "--strategy=ours", "--message=x", "side")
	merge := r.Git("rev-parse", "HEAD")
	r.Git("tag", "--annotate", "--message=x", "v1")
	r.Git("checkout", "--quiet", "--orphan", "unrelated")
	unrelated := r.Declare("unrelated")
	r.Git("checkout", "--quiet", "-b", "pushed", root)
	pushed := r.Declare("pushed")
	forced := r.Declare("forced")
	r.Git("reset", "--quiet", "--hard", pushed)
	rewritten := r.Declare("rewritten")

	for _, filter := range []string{"false", "true"} {
		r.Git("config", "uploadpack.allowFilter", filter)
		for where, location := range map[string]string{"local": r.Dir, "http": r.Serve()} {
			for name, c := range map[string]struct {
				newer, older string
				want         bool
			}{
				"itself":                   {merge, merge, true},
				"one after it":             {merge, before, true},
				"the other side of it":     {merge, side, true},
				"the first":                {merge, root, true},
				"the way back":             {root, merge, false},
				"beside it":                {rewritten, merge, false},
				"unrelated":                {unrelated, merge, false},
				"forced":                   {rewritten, forced, false},
				"of a commit that is gone": {rewritten, strings.Repeat("a", 40), false},
			} {
				t.Run(where+"/filter "+filter+"/"+name, func(t *testing.T) {
					got, err := Descends(t.Context(), Options{Location: location}, refs.Revision{Commit: c.newer}, c.older)
					if err != nil || got != c.want {
						t.Errorf("%v, %v; want %v", got, err, c.want)
					}
				})
			}
		}
	}
}

// TestDescendsFetchesHistoryInSteps checks that Descends requests only as much history as it needs.
func TestDescendsFetchesHistoryInSteps(t *testing.T) {
	r := newRepository(t)
	root := r.Declare("a")
	commits := r.grow(700, 10)
	location, seen := r.counted()
	newest := refs.Revision{Commit: commits[699]}
	for _, c := range []struct {
		older string
		packs int64
		want  bool
	}{{commits[660], 1, true}, {commits[600], 2, true}, {commits[0], 3, true}, {root, 3, true}, {strings.Repeat("a", 40), 3, false}} {
		packs := seen.packs.Load()
		got, err := Descends(t.Context(), Options{Location: location}, newest, c.older)
		if err != nil || got != c.want || seen.packs.Load()-packs != c.packs {
			t.Errorf("%v, %v after %d requests; want %v after %d", got, err, seen.packs.Load()-packs, c.want, c.packs)
		}
	}
}

// TestUnknownDescentIsAnError checks that an error is returned instead of a guess if the ancestry cannot be determined.
func TestUnknownDescentIsAnError(t *testing.T) {
	r := newRepository(t)
	root := r.Declare("a")
	commits := r.grow(100, 1000)
	newest := refs.Revision{Commit: commits[99]}
	shallow := filepath.Join(t.TempDir(), "shallow")
	r.Git("clone", "--quiet", "--depth=10", "file://"+r.Dir, shallow)

	if got, err := Descends(t.Context(), Options{Location: shallow}, newest, commits[95]); err != nil || !got {
		t.Errorf("%v, %v: the clone has that commit", got, err)
	}
	served, givesOut := r.Serve(), newRepository(t)
	given := givesOut.Declare("a")
	givesOut.Git("config", "uploadpack.allowReachableSHA1InWant", "true")
	for name, c := range map[string]struct {
		o     Options
		newer refs.Revision
		older string
		is    error
		want  string
	}{
		"shallow clone": {Options{Location: shallow}, newest, root, history.ErrCutOff,
			"the history is incomplete: the 10 known commits up to " + newest.Commit + " do not include " + root + "; to fetch the rest, run git fetch --unshallow"},
		"pack too large": {Options{Location: served, Transfer: remote.Limits{PackBytes: 8 << 10}}, newest, root, ErrSource, "raise limits.bytes"},
		"no such commit": {Options{Location: r.Dir}, refs.Revision{Commit: strings.Repeat("a", 40)}, root, ErrSource, "read the commit " + strings.Repeat("a", 40)},
		"not at a tip":   {Options{Location: served}, refs.Revision{Commit: strings.Repeat("a", 40)}, root, history.ErrGone, "read the commit " + strings.Repeat("a", 40)},
		"not reachable":  {Options{Location: givesOut.Serve()}, refs.Revision{Commit: strings.Repeat("a", 40)}, given, history.ErrGone, "not our ref " + strings.Repeat("a", 40)},
		"directory":      {Options{Location: t.TempDir()}, newest, root, ErrSource, "has no history"},
		"short":          {Options{Location: r.Dir}, newest, root[:7], ErrOptions, "both must be full commit hashes of 40 hexadecimal digits"},
		"no commit":      {Options{Location: r.Dir}, refs.Revision{}, root, ErrOptions, "both must be full commit hashes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Descends(t.Context(), c.o, c.newer, c.older)
			if got || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, error %v, want %v with %q", got, err, c.is, c.want)
			}
		})
	}
}
