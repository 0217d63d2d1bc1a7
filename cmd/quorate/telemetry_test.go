package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/internal/procgroup/procgrouptest"
)

// refusing returns the kubeconfig of an API server that refuses all requests.
func refusing(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	t.Cleanup(server.Close)
	return kubeconfigTo(t, server.URL)
}

// kubeconfigTo returns a kubeconfig for an API server.
func kubeconfigTo(t *testing.T, url string) string {
	return filesIn(t, "kubeconfig", "{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], "+
		"clusters: [{name: c, cluster: {server: \""+url+"\"}}], users: [{name: u, user: {token: s3cret}}]}") + "/kubeconfig"
}

// requireCounted requires the series about sources and requests that every run has.
func requireCounted(t *testing.T, text, source string) {
	t.Helper()
	for _, want := range []string{
		`quorate_phase_duration_seconds_count{phase="fetch"} `, `quorate_phase_duration_seconds_count{phase="list"} `,
		`quorate_phase_duration_seconds_count{phase="observe"} 0`, `quorate_api_requests_total{code="4xx",verb="list"} `,
		"quorate_lease_conflicts_total 0", `quorate_source_commit_timestamp_seconds{source="` + source + `"} 1`,
	} {
		if !strings.Contains(text, "\n"+want) || strings.Contains(text, "\n"+want+"0\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestRunWritesMetricsAtEnd checks that everything that was counted during a run is exported at its end.
func TestRunWritesMetricsAtEnd(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	file := filepath.Join(t.TempDir(), "quorate.prom")
	var stderr bytes.Buffer
	code := execute(t.Context(), withSettings(t, "run", "--source", r.Dir, "--kubeconfig", refusing(t), "metrics.file="+file),
		streams{out: io.Discard, err: &stderr})
	text, err := os.ReadFile(file)
	if code != exitError || err != nil {
		t.Fatalf("code %d, %v: %s", code, err, stderr.String())
	}
	requireCounted(t, string(text), r.Dir)
	if one := "\n" + `quorate_phase_duration_seconds_count{phase="fetch"} 1` + "\n"; !strings.Contains(string(text), one) {
		t.Errorf("no %s in\n%s", one, text)
	}
}

// TestLoopServesMetrics checks that a loop serves the metrics that it has collected so far.
func TestLoopServesMetrics(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	address := procgrouptest.Address()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"run", "--loop", "--listen", address, "--source", r.Dir, "--kubeconfig", refusing(t)},
			streams{out: io.Discard, err: io.Discard})
	}()
	text := ""
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			continue
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if text = string(body); err == nil && strings.Contains(text, "quorate_source_commit_timestamp_seconds{") && strings.Contains(text, "quorate_api_requests_total{") {
			break
		}
	}
	requireCounted(t, text, r.Dir)
	cancel()
	if code := <-ended; code != exitOK {
		t.Errorf("code %d", code)
	}
}
