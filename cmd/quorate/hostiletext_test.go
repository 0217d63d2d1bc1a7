package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestHostileTextIsPrintedAsPlainText checks that log lines, progress lines and the final error line print untrusted
// text as plain text.
func TestHostileTextIsPrintedAsPlainText(t *testing.T) {
	for name, text := range printabletest.Hostile {
		lines := map[string]func(*bytes.Buffer){
			"progress": func(b *bytes.Buffer) {
				progressTo(b, report.Style{})(report.Report{Clusters: []report.Cluster{
					{Namespace: "ns", Name: "x", Decision: decide.Decision{Rule: "R", Verdict: decide.Block, Message: text}},
				}}, 0)
			},
			"the title of a cluster": func(b *bytes.Buffer) {
				progressTo(b, report.Style{})(report.Report{Clusters: []report.Cluster{
					{Namespace: "ns", Name: text, Decision: decide.Decision{Rule: "R", Verdict: decide.Block}},
				}}, 0)
			},
			"the damage of a backup": func(b *bytes.Buffer) {
				_ = explainDamage(streams{out: b, err: b}, store.Manifest{Namespace: "ns", Cluster: "x"}, text)
			},
			"the last line": func(b *bytes.Buffer) {
				execute(t.Context(), []string{"validate", "--source", ".", "--verify-keys", text}, streams{out: b, err: b})
			},
			"a wrong flag": func(b *bytes.Buffer) {
				execute(t.Context(), []string{"run", "--source=.", "--approve=" + text}, streams{out: b, err: b})
			},
		}
		for _, width := range []int{20, 80, 100, 120} {
			lines[fmt.Sprintf("a report %d columns wide", width)] = func(b *bytes.Buffer) {
				b.WriteString(report.Style{Width: width}.Wrap(text, 0, 4))
			}
		}
		for _, format := range []string{"text", "json"} {
			for value, attr := range map[string]any{"a string": text, "an error": errors.New(text), "a group": slog.GroupValue(slog.String("x", text))} {
				lines["the log as "+format+", "+value] = func(b *bytes.Buffer) {
					flags := logFlags{format: format}
					log, err := flags.logger(streams{err: b})
					if err != nil {
						t.Fatal(err)
					}
					log.With("cluster", "ns/x").Info("said", "words", attr)
				}
			}
		}
		for where, print := range lines {
			var b bytes.Buffer
			print(&b)
			if unfit := printabletest.Unfit(b.String()); unfit != "" {
				t.Errorf("%s in %s: %s: %.300q", name, where, unfit, b.String())
			}
			if printabletest.Long(b.String()) {
				t.Errorf("%s in %s: a line of it is very long", name, where)
			}
		}
	}
}

// TestAPIServerWarningsArePlainTextAndPrintedOnce checks that warnings from an API server are printed as plain text,
// and only once.
func TestAPIServerWarningsArePlainTextAndPrintedOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "harmless ##vso[task.complete]"`)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	var out, stderr bytes.Buffer
	execute(t.Context(), []string{"status", "--kubeconfig", kubeconfigOf(t, server)}, streams{out: &out, err: &stderr})
	if got, want := stderr.String(), "warning from the API server: harmless # #vso[task.complete]\n"; strings.Count(got, "vso") != 1 || !strings.Contains(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestKubernetesClientLogsInConfiguredFormat checks that log messages of the Kubernetes client use the configured
// format.
func TestKubernetesClientLogsInConfiguredFormat(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100") // the body is never sent
	}))
	defer server.Close()
	var out, stderr bytes.Buffer
	execute(t.Context(), []string{"status", "--kubeconfig", kubeconfigOf(t, server), "--log-format", "json"}, streams{out: &out, err: &stderr})
	var line struct{ Level, Msg, Err string }
	if err := json.NewDecoder(&stderr).Decode(&line); err != nil || line.Level != "ERROR" || !strings.Contains(line.Msg, "reading response body") || line.Err != "unexpected EOF" {
		t.Errorf("got %+v, %v; then %q", line, err, stderr.String())
	}
}

// kubeconfigOf writes a kubeconfig for the given server, and returns the name of the file.
func kubeconfigOf(t *testing.T, server *httptest.Server) string {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c}}], "+
		"clusters: [{name: c, cluster: {server: '"+server.URL+"'}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
