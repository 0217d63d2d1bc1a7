package status

import (
	"math/rand/v2"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// newsOf returns the news of a pass and writes the status of the pass.
func newsOf(live *v1alpha1.EtcdCluster, entry report.Cluster, source reconcile.SourceStatus) string {
	t := targets.Target{Cluster: *live}
	next := New(live, t, entry, source)
	var words []string
	for _, n := range News(live, next, Events(live, next, t, entry, "host", noon)) {
		word := n.Reason
		if n.Warning {
			word += "!"
		}
		words = append(words, word)
	}
	live.Status = next
	return strings.Join(words, " ")
}

func TestEventsAreReportedOnce(t *testing.T) {
	blocked, acted, broken := healthyEntry(), healthyEntry(), healthyEntry()
	blocked.Decision = decide.Decision{Rule: "QuorumLost", Verdict: decide.Block, Message: "lost"}
	acted.Decision = decide.Decision{Rule: "AddMember", Verdict: decide.Act, Action: decide.AddLearner{}, Message: "join"}
	acted.Outcome = &report.Outcome{Changed: true}
	broken.Error = "no answer"
	away := reconcile.SourceStatus{Error: "read tcp 10.0.0.1:1234: timeout"}
	awayAgain := reconcile.SourceStatus{Error: "read tcp 10.0.0.1:5678: timeout"}
	next := reconcile.SourceStatus{Revision: "main@sha1:def"}
	live := liveCluster()
	for i, pass := range []struct {
		entry  report.Cluster
		source reconcile.SourceStatus
		want   string
	}{
		{healthyEntry(), fetchedMain, "Converged Revision"}, {healthyEntry(), fetchedMain, ""},
		{blocked, fetchedMain, "QuorumLost!"}, {blocked, fetchedMain, ""},
		{acted, fetchedMain, "AddMember"}, {acted, fetchedMain, "AddMember"},
		{healthyEntry(), fetchedMain, "Converged"}, {healthyEntry(), away, "FetchFailed!"}, {healthyEntry(), awayAgain, ""},
		{healthyEntry(), next, "Revision Fetched"}, {broken, next, "Converged!"}, {broken, next, ""},
	} {
		if got := newsOf(live, pass.entry, pass.source); got != pass.want {
			t.Errorf("pass %d: got %q, want %q", i, got, pass.want)
		}
	}
}

// TestUnchangedPassReportsNothing checks that a pass with the same findings as the previous pass does not report news.
func TestUnchangedPassReportsNothing(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	pick := func(words ...string) string { return words[chance.IntN(len(words))] }
	for range 300 {
		live, told := liveCluster(), false
		for range 6 {
			entry := healthyEntry()
			entry.Decision = decide.Decision{Rule: pick(decide.Converged, "QuorumLost", "InvalidSpec"), Message: pick("a", "b"),
				Verdict: decide.Verdict(pick(string(decide.Done), string(decide.Block), string(decide.Wait)))}
			entry.Error = pick("", "", "no answer")
			source := reconcile.SourceStatus{Revision: pick("main@sha1:a", "main@sha1:b"), Error: pick("", "", "away")}
			told = newsOf(live, entry, source) != "" || told
			if again := newsOf(live, entry, source); again != "" {
				t.Fatalf("%+v, %+v: %s", entry.Decision, source, again)
			}
		}
		if !told {
			t.Fatal("nothing was news")
		}
	}
}

// TestEventsOfPassHaveUniqueTimes checks that the names of events contain the time and are unique.
func TestEventsOfPassHaveUniqueTimes(t *testing.T) {
	held := targets.Target{Held: "an approval is missing", Warnings: []string{"held"}}
	blocked := healthyEntry()
	blocked.Decision = decide.Decision{Rule: "QuorumLost", Verdict: decide.Block, Message: "lost"}
	live := liveCluster()
	held.Cluster = *live
	events := Events(live, New(live, held, blocked, reconcile.SourceStatus{}), held, blocked, "host", noon)
	times := map[int64]bool{}
	for _, e := range events {
		times[e.At.UnixNano()] = true
	}
	if len(events) < 2 || len(times) != len(events) {
		t.Errorf("%d events of %d times: %+v", len(events), len(times), events)
	}
}
