package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

const tokenOfHost, keyOfWebhook = "s3cret-of-the-host", "s3cret-key-of-24-bytes-or-more"

// toldServer is a server that receives notifications and commit statuses.
type toldServer struct {
	*httptest.Server
	mu    sync.Mutex
	posts []string
}

func newToldServer(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *toldServer {
	t.Helper()
	s := &toldServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			s.mu.Lock()
			s.posts = append(s.posts, r.URL.Path+" "+string(body))
			s.mu.Unlock()
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// fileWith returns a file that contains a secret.
func fileWith(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func notifying(t *testing.T, f *notifyFlags, log io.Writer, atEnd bool) *notifier {
	t.Helper()
	f.given = func(string) bool { return true }
	if f.context == "" {
		f.context = "quorate"
	}
	if f.format == "" {
		f.format = "json"
	}
	s := &sourceFlags{values: []string{"https://git.example.com/acme/fleet.git"}}
	if err := f.check(s); err != nil {
		t.Fatal(err)
	}
	r := &reconcile.Reconciler{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	return f.begin(t.Context(), r, "", atEnd)
}

func blockedReport() report.Report {
	return report.Report{Revision: "main@sha1:" + strings.Repeat("a", 40), Clusters: []report.Cluster{{Namespace: "shop", Name: "a",
		Decision: decide.Decision{Rule: "QuorumLost", Verdict: decide.Block, Message: "lost"},
		News:     []report.News{{Warning: true, Reason: "QuorumLost", Message: "lost"}}}}}
}

func TestRunSendsNotificationAndCommitStatus(t *testing.T) {
	t.Parallel()
	s := newToldServer(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"statuses":[]}`) })
	var log bytes.Buffer
	n := notifying(t, &notifyFlags{status: "gitea=" + s.URL + "/api/v1", tokenFile: fileWith(t, tokenOfHost),
		to: []string{"@" + fileWith(t, s.URL+"/hook/s3cret")}, secretFile: fileWith(t, keyOfWebhook)}, &log, true)
	n.observe(blockedReport(), time.Second)
	quiet := blockedReport()
	quiet.Clusters[0].News = nil
	n.observe(quiet, time.Second)
	n.end(t.Context(), time.Minute)
	if log.String() != "" || len(s.posts) != 2 {
		t.Fatalf("%s%q", log.String(), s.posts)
	}
	for _, p := range s.posts {
		path, body, _ := strings.Cut(p, " ")
		switch path {
		case "/hook/s3cret":
			if strings.Count(body, `"reason":"QuorumLost"`) != 1 || !json.Valid([]byte(body)) {
				t.Error(body)
			}
		case "/api/v1/repos/acme/fleet/statuses/" + strings.Repeat("a", 40):
			if !strings.Contains(body, `"state":"failure"`) || !strings.Contains(body, "shop/a: QuorumLost: lost") {
				t.Error(body)
			}
		default:
			t.Error(p)
		}
	}
}

// TestLoopSendsEachNotificationOnce checks that a loop sends notifications while it is running, each of them only once.
func TestLoopSendsEachNotificationOnce(t *testing.T) {
	told := make(chan string, 9)
	s := newToldServer(t, func(w http.ResponseWriter, r *http.Request) { told <- r.URL.Path })
	var log bytes.Buffer
	n := notifying(t, &notifyFlags{to: []string{s.URL + "/hook"}}, &log, false)
	n.observe(blockedReport(), time.Second)
	if path := <-told; path != "/hook" {
		t.Error(path)
	}
	n.observe(report.Report{}, time.Second)
	n.end(t.Context(), time.Minute)
	if log.String() != "" || len(s.posts) != 1 {
		t.Errorf("%s%q", log.String(), s.posts)
	}
}

// TestNotifyFailuresAreWarnings checks that a failed notification causes a warning without secrets, and does not exceed
// the time limit.
func TestNotifyFailuresAreWarnings(t *testing.T) {
	refuses := newToldServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, r.RequestURI+r.Header.Get("Authorization"))
	})
	hangs := newToldServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, s := range []*toldServer{refuses, hangs} {
		var log bytes.Buffer
		n := notifying(t, &notifyFlags{status: "github=" + s.URL, tokenFile: fileWith(t, tokenOfHost),
			to: []string{"@" + fileWith(t, s.URL+"/s3cret"), s.URL + "/s3cret"}, secretFile: fileWith(t, keyOfWebhook)}, &log, true)
		n.observe(blockedReport(), time.Second)
		began := time.Now()
		n.end(t.Context(), time.Second)
		if text := log.String(); strings.Count(text, "level=WARN") != 3 || strings.Contains(text, "s3cret") || time.Since(began) > 8*time.Second {
			t.Errorf("after %s: %s", time.Since(began), text)
		}
	}
}

// TestNotifyFlags checks that settings that would fail later are rejected immediately, and that errors contain no
// secrets.
func TestNotifyFlags(t *testing.T) {
	t.Parallel()
	token, short := fileWith(t, tokenOfHost), fileWith(t, "s3cret")
	dir := t.TempDir()
	git := "https://git.example.com/acme/fleet.git"
	for _, test := range []struct {
		args string
		want string
	}{
		{"--source cluster commitStatus.host=github commitStatus.tokenFile=" + token, "there is no commit"},
		{"--source " + dir + " commitStatus.host=github commitStatus.tokenFile=" + token, "commitStatus.repository"},
		{"--source " + git + " commitStatus.host=github", "requires commitStatus.tokenFile"},
		{"--source . commitStatus.host=svn commitStatus.tokenFile=" + token, "expected one of github, gitlab, gitea, bitbucket"},
		{"--source " + git + " commitStatus.host=gitea=http://api.example.com/api/v1 commitStatus.tokenFile=" + token, "to api.example.com unencrypted"},
		{"--source " + git + " --source https://other.example.com/a/b.git commitStatus.host=gitea commitStatus.tokenFile=" + token, "several hosts"},
		{"--source " + git + " commitStatus.tokenFile=" + token, "requires commitStatus.host"},
		{"--source " + git + " notifications.secretFile=" + token, "requires notifications.webhooks"},
		{"--source " + git + " notifications.webhooks=s3cret", "notifications.webhooks: expected a URL"},
		{"--source " + git + " notifications.webhooks=@" + short, "notifications.webhooks: expected a URL"},
		{"--source " + git + " notifications.webhooks=http://me:s3cret@example.com", "unencrypted"},
		{"--source " + git + " notifications.webhooks=https://example.com/s3cret notifications.format=teams", "notifications.format"},
		{"--source " + git + " notifications.webhooks=https://example.com/s3cret notifications.secretFile=" + short, "24 bytes"},
		{"--source " + git + " notifications.webhooks=https://example.com/s3cret commitStatus.context=s3cret\x1b", "commitStatus.context"},
	} {
		var out, stderr bytes.Buffer
		code := execute(t.Context(), withSettings(t, append([]string{"run"}, strings.Split(test.args, " ")...)...), streams{out: &out, err: &stderr})
		if code != exitInvalid || !strings.Contains(stderr.String(), test.want) || strings.Contains(stderr.String(), "s3cret") {
			t.Errorf("%s: %d %s", test.args, code, stderr.String())
		}
	}
}

// TestFailedRunReportsCommitStatus checks that a run that fails still writes the status of the commit it has read, and
// that its exit code does not change.
func TestFailedRunReportsCommitStatus(t *testing.T) {
	t.Parallel()
	s := newToldServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "token "+tokenOfHost {
			w.WriteHeader(http.StatusUnauthorized)
		}
		io.WriteString(w, `{"statuses":[]}`)
	})
	repository := gittest.NewRepository(t)
	repository.Declare("a")
	commit := repository.Commit()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], "+
		"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: u, user: {token: t}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	code := execute(t.Context(), withSettings(t, "run", "--kubeconfig", kubeconfig, "--source", repository.Dir, "--log-level", "debug",
		"commitStatus.host=gitea="+s.URL+"/api/v1", "commitStatus.repository=https://git.example.com/acme/fleet.git",
		"commitStatus.tokenFile="+fileWith(t, tokenOfHost), "notifications.webhooks=@"+fileWith(t, s.URL+"/s3cret")), streams{out: &out, err: &stderr})
	if code != exitError || len(s.posts) != 1 || !strings.HasPrefix(s.posts[0], "/api/v1/repos/acme/fleet/statuses/"+commit+" ") || !strings.Contains(s.posts[0], `"state":"failure"`) {
		t.Errorf("%d %q\n%s", code, s.posts, stderr.String())
	}
	if text := out.String() + stderr.String(); strings.Contains(text, "s3cret") {
		t.Error(text)
	}
}

// TestStoppedRunDoesNotWaitForReceivers checks that a stopped run does not wait for unresponsive receivers, because it
// could then be killed.
func TestStoppedRunDoesNotWaitForReceivers(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	hangs := newToldServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	repository := gittest.NewRepository(t)
	repository.Declare("a")
	repository.Commit()
	var listed atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/leases") && listed.Add(1) == 2 {
			stop()
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	kubeconfig := fileWith(t, fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c}}], "+
		"clusters: [{name: c, cluster: {server: %q}}]}", server.URL))
	var out, stderr bytes.Buffer
	began := time.Now()
	execute(ctx, withSettings(t, "run", "--until-converged", "--kubeconfig", kubeconfig, "--source", repository.Dir,
		"commitStatus.host=gitea="+hangs.URL+"/api/v1", "commitStatus.repository=https://git.example.com/acme/fleet.git",
		"commitStatus.tokenFile="+fileWith(t, tokenOfHost)), streams{out: &out, err: &stderr})
	if took := time.Since(began); took > timeToNotify-10*time.Second || !strings.Contains(stderr.String(), `msg="send notifications" setting=commitStatus`) {
		t.Errorf("it has ended after %s: %s", took, stderr.String())
	}
}

// TestNotificationContextNamesKubernetesCluster checks that notifications use a different name for each of several
// Kubernetes clusters.
func TestNotificationContextNamesKubernetesCluster(t *testing.T) {
	f := &notifyFlags{context: "team", to: []string{"https://hooks.example.com/a"}}
	for kubernetes, want := range map[string]string{"": "team", "eu-1": "team/eu-1"} {
		n := f.begin(t.Context(), &reconcile.Reconciler{Log: slog.New(slog.DiscardHandler)}, kubernetes, true)
		if n.context != want {
			t.Errorf("%q is reported as %q, not %q", kubernetes, n.context, want)
		}
		n.end(t.Context(), time.Second)
	}
}

// TestSecretIn checks that a file must contain nothing but the secret.
func TestSecretIn(t *testing.T) {
	for text, want := range map[string]string{
		" s3cret\n": "s3cret",
		"":          "",
		"a\nb":      "",
		"s3cret" + strings.Repeat(" ", mostOfFile) + "\nanother": "",
		strings.Repeat("s", mostOfFile+1):                        "",
	} {
		if got, err := secretIn(fileWith(t, text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%.20q: %.20q, %v", text, got, err)
		}
	}
}
