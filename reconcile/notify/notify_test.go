package notify

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func cluster(name, source string, d decide.Decision) report.Cluster {
	return report.Cluster{Namespace: "shop", Name: name, Decision: d, Where: report.Problem{Source: source}}
}

var (
	done    = decide.Decision{Rule: decide.Converged, Verdict: decide.Done, Message: "as declared"}
	waits   = decide.Decision{Rule: "Waiting", Verdict: decide.Wait, Message: "soon"}
	blocked = decide.Decision{Rule: "QuorumLost", Verdict: decide.Block, Message: "lost"}
)

func TestNews(t *testing.T) {
	a, b := cluster("a", "", blocked), cluster("b", "", done)
	away := report.News{Warning: true, Reason: "FetchFailed", Message: "away", About: report.AboutSource}
	a.News = []report.News{{Warning: true, Reason: "QuorumLost", Message: "lost\n\x1b[2J"}, away}
	b.News = []report.News{away}
	rep := report.Report{Clusters: []report.Cluster{a, b}, Problems: []report.Problem{{File: "a.yaml", Line: 3, Message: "no"}}}
	got, _ := json.Marshal(News(rep))
	want := `[{"cluster":"shop/a","warning":true,"reason":"QuorumLost","message":"lost \\x1b[2J"},{"warning":true,"reason":"FetchFailed","message":"away"}]`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
	// Problems are reported only together with a new revision, and not by later passes.
	rep.Clusters = []report.Cluster{b}
	rep.Clusters[0].News = []report.News{{Reason: "Revision", About: report.AboutRevision}}
	if got := News(rep); len(got) != 1 || got[0].Reason != "InvalidDeclaration" || got[0].Message != "a.yaml:3: no" {
		t.Errorf("got %+v", got)
	}
	rep.Clusters[0].News = nil
	if got := News(rep); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestBoard(t *testing.T) {
	at := "main@sha1:" + commit
	failing := cluster("c", "", done)
	failing.Error = "no answer"
	for name, test := range map[string]struct {
		rep  report.Report
		want Status
	}{
		"done":    {report.Report{Clusters: []report.Cluster{cluster("a", "", done)}}, Status{Success, "1 cluster is up to date"}},
		"waits":   {report.Report{Clusters: []report.Cluster{cluster("a", "", done), cluster("b", "", waits)}}, Status{Pending, "1 of 2 clusters not up to date"}},
		"blocked": {report.Report{Clusters: []report.Cluster{cluster("a", "", blocked), cluster("b", "", waits)}}, Status{Failure, "shop/a: QuorumLost: lost"}},
		"failed":  {report.Report{Clusters: []report.Cluster{cluster("a", "", blocked), failing}}, Status{Failure, "shop/a: QuorumLost: lost (and 1 more)"}},
		"invalid": {report.Report{Clusters: []report.Cluster{cluster("a", "", done)}, Problems: []report.Problem{{File: "x.yaml", Line: 1, Message: "no"}}}, Status{Failure, "x.yaml:1: no"}},
		"error":   {report.Report{Error: "away\x1b"}, Status{Failure, `away\x1b`}},
		"unseen":  {report.Report{Others: []string{"shop/z"}}, Status{Pending, "not all clusters have been processed yet"}},
	} {
		var b Board
		test.rep.Revision = at
		b.Observe(test.rep, true)
		if got, status := b.Commit(""); got != commit || status != test.want {
			t.Errorf("%s: got %s %+v", name, got, status)
		}
	}
}

// TestBoardSeparatesSources checks that the status for one source does not reveal another source.
func TestBoardSeparatesSources(t *testing.T) {
	var b Board
	b.Observe(report.Report{
		Sources:  []report.Source{{Source: "x", Revision: "main@sha1:" + commit}, {Source: "y", Revision: "directory"}, {Source: "z", Revision: "sha1:" + commit}},
		Clusters: []report.Cluster{cluster("a", "x", done), cluster("b", "z", blocked)},
	}, true)
	if got, s := b.Commit("x"); got != commit || s != (Status{Success, "1 cluster is up to date"}) {
		t.Error(got, s)
	}
	if got, s := b.Commit("z"); got != commit || s.State != Failure {
		t.Error(got, s)
	}
	for _, source := range []string{"y", "none", ""} {
		if got, _ := b.Commit(source); got != "" {
			t.Error(source, got)
		}
	}
}

// TestBoardRemembersClustersBetweenPasses checks that clusters keep their state if a pass does not cover them, because
// a pass of a loop may process only some of the clusters.
func TestBoardRemembersClustersBetweenPasses(t *testing.T) {
	var b Board
	at := "main@sha1:" + commit
	b.Observe(report.Report{Revision: at, Clusters: []report.Cluster{cluster("a", "", blocked), cluster("b", "", waits)}}, true)
	b.Observe(report.Report{Clusters: []report.Cluster{cluster("b", "", done)}}, false)
	b.Observe(report.Report{Revision: at, Others: []string{"shop/a", "shop/b"}}, true)
	if _, s := b.Commit(""); s.State != Failure {
		t.Error(s)
	}
	unlisted := report.Report{Revision: at, Others: []string{"shop/b"}, Unobserved: true, UnlistedIn: []string{"shop"}}
	if b.Observe(unlisted, true); len(b.clusters) != 2 {
		t.Errorf("clusters of an unlisted namespace are forgotten: %v", b.clusters)
	}
	unlisted.UnlistedIn = []string{"bank"}
	if b.Observe(unlisted, true); len(b.clusters) != 1 {
		t.Errorf("a deleted cluster is remembered while a different namespace cannot be listed: %v", b.clusters)
	}
	b.Observe(report.Report{Revision: at, Others: []string{"shop/b"}}, true)
	if _, s := b.Commit(""); s != (Status{Success, "1 cluster is up to date"}) {
		t.Error(s)
	}
}

func TestLongDescriptionIsShortened(t *testing.T) {
	var b Board
	long := cluster("a", "", decide.Decision{Rule: "X", Verdict: decide.Block, Message: strings.Repeat("ä", 500)})
	b.Observe(report.Report{Revision: "sha1:" + commit, Clusters: []report.Cluster{long, cluster("b", "", blocked)}}, true)
	if _, s := b.Commit(""); len(s.Description) > LongestDescription || !utf8.ValidString(s.Description) || !strings.HasSuffix(s.Description, " (and 1 more)") {
		t.Errorf("%d: %s", len(s.Description), s.Description)
	}
}

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func hostile() Message {
	return NewMessage("m1", noon, "quorate", "main@sha1:"+commit, []Event{
		{Cluster: "shop/a", Warning: true, Reason: "InvalidSpec", Message: "<!channel> <@U012> @here & `x` *b* [l](http://x)\x1b[2J\u202e"},
		{Cluster: "shop/b", Reason: "Converged", Message: "as declared"},
	})
}

func TestEncodeEscapesHostileText(t *testing.T) {
	event := `"events":[{"cluster":"shop/a","warning":true,"reason":"InvalidSpec","message":"\u003c!channel\u003e \u003c@U012\u003e @here \u0026 ` + "`x`" + ` *b* [l](http://x)\u001b[2J\u202e"},{"cluster":"shop/b","warning":false,"reason":"Converged","message":"as declared"}]`
	data := `{"id":"m1","time":"2026-11-01T12:00:00Z","context":"quorate","revision":"main@sha1:` + commit + `","summary":"2 events, 1 warning",` + event + `}`
	for format, want := range map[Format][2]string{
		JSON:        {"application/json", data},
		CloudEvents: {"application/cloudevents+json", `{"specversion":"1.0","id":"m1","source":"/quorate/quorate","type":"dev.quorate.run.news.v1","time":"2026-11-01T12:00:00Z","datacontenttype":"application/json","data":` + data + `}`},
		Slack: {"application/json", `{"text":"Quorate ` + "`quorate`" + ` at ` + "`main@sha1:" + commit + "`" +
			`\n:warning: ` + "`shop/a: InvalidSpec: \\u0026lt;!channel\\u0026gt; \\u0026lt;@U012\\u0026gt; @here \\u0026amp; 'x' *b* [l](http://x)\\\\x1b[2J\\\\u202e`" +
			`\n:information_source: ` + "`shop/b: Converged: as declared`" + `"}`},
	} {
		body, mediaType, err := hostile().Encode(format)
		if err != nil || mediaType != want[0] || string(body) != want[1] {
			t.Errorf("%s: %v %s\n%s\nwant\n%s", format, err, mediaType, body, want[1])
		}
		if !printable.Is(string(body)) || !json.Valid(body) {
			t.Errorf("%s: %q", format, body)
		}
	}
}

func TestEventsInMessageAreLimited(t *testing.T) {
	events := make([]Event, 60)
	events[59].Warning = true
	m := NewMessage("m", noon, "quorate", "", events)
	if len(m.Events) != 50 || m.More != 10 || !m.Events[0].Warning || m.Summary != "60 events, 1 warning" {
		t.Errorf("%d %d %+v", len(m.Events), m.More, m.Summary)
	}
	if text := m.slack(); !strings.HasSuffix(text, "\nand 40 more") || strings.Count(text, "\n") != 21 {
		t.Error(text)
	}
}

// TestSign checks the signature of the example in the Standard Webhooks specification.
func TestSign(t *testing.T) {
	got, err := Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if err != nil || got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got, err)
	}
	for _, secret := range []string{"", "short", "whsec_!", "whsec_AAAA"} {
		if _, err := Sign(secret, "", noon, nil); err == nil {
			t.Errorf("%q is accepted", secret)
		}
	}
}
