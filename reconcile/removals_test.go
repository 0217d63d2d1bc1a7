package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/notify"
	"quorate.dev/quorate/reconcile/report"
)

// holding is a Live that holds removals.
type holding struct {
	*live
	removals []report.Removal
	unlisted error
}

func (h *holding) Observe(
	ctx context.Context, desired reconcile.Desired, wanted func(string) bool,
) (reconcile.Observed, error) {
	observed, err := h.live.Observe(ctx, desired, wanted)
	if err == nil {
		observed.Removals, observed.Unlisted = h.removals, h.unlisted
	}
	return observed, err
}

func removalOf(source, revision, cluster string) report.Removal {
	return report.Removal{Source: source, Revision: revision, Clusters: []string{cluster}, Of: 1}
}

// TestEachHeldRemovalIsLoggedOnce checks that a held removal is logged once, and again only if it is held again after
// having ended. A pass that could not determine the removals does not end them.
func TestEachHeldRemovalIsLoggedOnce(t *testing.T) {
	first, second := removalOf("one", "main@sha1:1", "ns/x"), removalOf("one", "main@sha1:2", "ns/y")
	unknown := removalOf("", "main@sha1:1", "ns/z")
	away := errors.New("no route to host")
	var log bytes.Buffer
	h := &holding{live: oneCluster()}
	s := &source{}
	r := reconciler(s, h)
	r.Log = slog.New(slog.NewTextHandler(&log, nil))
	for _, pass := range []struct {
		name     string
		held     []report.Removal
		unread   error
		failing  error
		unlisted error
		want     int
	}{
		{name: "first", held: []report.Removal{first}, want: 1},
		{name: "again", held: []report.Removal{first}},
		{name: "with a second removal", held: []report.Removal{first, second}, want: 1},
		{name: "both again", held: []report.Removal{first, second}},
		{name: "source not read", unread: away},
		{name: "source read", held: []report.Removal{first, second}},
		{name: "nothing observed", failing: away},
		{name: "observed", held: []report.Removal{first, second}},
		{name: "not everything listed", unlisted: away},
		{name: "listed", held: []report.Removal{first, second}},
		{name: "declared again"},
		{name: "removed again", held: []report.Removal{first}, want: 1},
		{name: "by an unknown source", held: []report.Removal{first, unknown}, want: 1},
		{name: "any source not read", unread: away},
		{name: "all sources read", held: []report.Removal{first, unknown}},
	} {
		log.Reset()
		s.desired = tenants(pass.unread, nil)
		h.removals, h.failing, h.unlisted = pass.held, []error{pass.failing}, pass.unlisted
		r.Pass(t.Context())
		if got := strings.Count(log.String(), "removal held"); got != pass.want {
			t.Errorf("%s: logged %d removals, want %d:\n%s", pass.name, got, pass.want, log.String())
		}
	}
}

// TestHeldRemovalFailsCommitStatusOfItsSource checks that a held removal fails the commit status of its source and no
// other commit status, however the user has written the path and location of the source.
func TestHeldRemovalFailsCommitStatusOfItsSource(t *testing.T) {
	commits := []string{strings.Repeat("a", 40), strings.Repeat("b", 40)}
	sources := []reconcile.SourceState{
		{Name: "https://host/one.git,path=apps", Label: "https://host/one.git,path=apps/"}, {Name: "/home/me/two", Label: "../two"},
	}
	for i := range sources {
		sources[i].Revision = "main@sha1:" + commits[i]
	}
	for removed, fails := range map[string]string{
		"https://host/one.git,path=apps": sources[0].Label,
		"https://host/one.git,path=old":  sources[0].Label,
		"/home/me/two":                   sources[1].Label,
		"https://host/other.git":         "",
		"":                               "",
	} {
		h := &holding{live: oneCluster(), removals: []report.Removal{removalOf(removed, "main@sha1:1", "ns/x")}}
		rep := reconciler(&source{desired: reconcile.Desired{Sources: sources}}, h).Pass(t.Context())
		var board notify.Board
		board.Observe(rep, true)
		for i, s := range sources {
			commit, status := board.Commit(s.Label)
			if failed := status.State == notify.Failure; commit != commits[i] || failed != (s.Label == fails) {
				t.Errorf("removed by %q: the status of %s at %q is %+v", removed, s.Label, commit, status)
			}
		}
	}
}
