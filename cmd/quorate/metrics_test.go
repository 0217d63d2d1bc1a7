package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/metrics"
	"quorate.dev/quorate/reconcile/report"
)

// service is a fake service to which a run reports when it ends.
type service struct {
	*httptest.Server
	asked []string // METHOD PATH USER:PASSWORD
	body  string
}

func newService(t *testing.T, status int) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path+" "+user+":"+password)
		body, _ := io.ReadAll(r.Body)
		s.body = string(body)
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s
}

// told returns the log output of reporting the end of a run.
func told(t *testing.T, f metricsFlags, err error) string {
	t.Helper()
	if err := f.check(); err != nil {
		t.Fatal(err)
	}
	rep := report.Report{Clusters: []report.Cluster{{Namespace: "shop", Name: "a", State: decide.State{Now: time.Unix(1793534400, 0)},
		Decision: decide.Decision{Rule: decide.Converged, Verdict: decide.Done}}}}
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the end of a stopped run is also reported
	m := metrics.New()
	m.Observe(rep, time.Second)
	f.tell(ctx, slog.New(slog.NewTextHandler(&log, nil)), m.Gatherer(), err)
	return log.String()
}

func TestMetricsFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "quorate.prom")
	if err := os.WriteFile(file, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if log := told(t, metricsFlags{file: file}, exit(exitBlocked)); log != "" {
		t.Error(log)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "\n"+`quorate_cluster_observed{name="a",namespace="shop"} 1`+"\n") || strings.Contains(string(text), "go_") {
		t.Errorf("%v: %s", err, text)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v is left, %v", entries, err)
	}
	if log := told(t, metricsFlags{file: filepath.Join(dir, "none", "quorate.prom")}, nil); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "no such file") {
		t.Error(log)
	}
}

func TestMetricsArePushedToPushgateway(t *testing.T) {
	gateway := newService(t, 200)
	withUser := strings.Replace(gateway.URL, "http://", "http://me:s3cret@", 1)
	if log := told(t, metricsFlags{pushgateway: withUser + "/prefix/", job: "etcd"}, exit(exitError)); log != "" {
		t.Error(log)
	}
	if len(gateway.asked) != 1 || gateway.asked[0] != "PUT /prefix/metrics/job/etcd me:s3cret" || !strings.Contains(gateway.body, "quorate_cluster_observed") {
		t.Errorf("%q: %s", gateway.asked, gateway.body)
	}
	for _, status := range []int{400, 307} {
		refuses := newService(t, status)
		log := told(t, metricsFlags{pushgateway: strings.Replace(refuses.URL, "http://", "http://me:s3cret@", 1), job: "etcd"}, nil)
		if !strings.Contains(log, "level=WARN") || !strings.Contains(log, "unexpected status code") || strings.Contains(log, "s3cret") {
			t.Error(log)
		}
	}
}

// TestEndpointResponsesAreLimitedAndRedacted checks that only the beginning of a service's response is read and logged,
// without secrets. The response may contain any text and may never end.
func TestEndpointResponsesAreLimitedAndRedacted(t *testing.T) {
	var sent atomic.Int64
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, password, _ := r.BasicAuth()
		text := fmt.Sprintf("\x1b[2J%s wants %s as %s\n", r.URL, password, r.Header.Get("Authorization"))
		for sent.Load() < 64<<20 {
			n, err := io.WriteString(w, text)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer echo.Close()
	log := told(t, metricsFlags{pushgateway: strings.Replace(echo.URL, "http://", "http://me:s3cret@", 1), job: "etcd",
		heartbeat: echo.URL + "/s3cret-path"}, nil)
	if len(log) > 4<<10 || strings.Count(log, "level=WARN") != 2 {
		t.Errorf("%d bytes of log: %.300s", len(log), log)
	}
	for _, secret := range []string{"s3cret", base64.StdEncoding.EncodeToString([]byte("me:s3cret"))} {
		if strings.Contains(log, secret) {
			t.Errorf("%s is logged: %.300s", secret, log)
		}
	}
	if sent.Load() >= 64<<20 {
		t.Error("all is read of an answer that has no end")
	}
}

// TestHeartbeatIsSentOnlyAfterSuccess checks that a dead man's switch gets heartbeats only for successful runs.
func TestHeartbeatIsSentOnlyAfterSuccess(t *testing.T) {
	for err, want := range map[error]int{nil: 1, exit(exitChanges): 1, exit(exitError): 0, exit(exitInvalid): 0,
		exit(exitBlocked): 0, exit(exitLocked): 0, exit(exitNotConverged): 0, io.ErrShortWrite: 0} {
		alarm := newService(t, 200)
		if log := told(t, metricsFlags{heartbeat: alarm.URL + "/s3cret"}, err); log != "" || len(alarm.asked) != want {
			t.Errorf("%v: %q, %s", err, alarm.asked, log)
		}
	}
	away := newService(t, 404)
	gone := newService(t, 200)
	gone.Close()
	for _, s := range []*service{away, gone} {
		log := told(t, metricsFlags{heartbeat: s.URL + "/s3cret?token=s3cret"}, nil)
		if !strings.Contains(log, "level=WARN") || strings.Contains(log, "s3cret") || !strings.Contains(log, s.Listener.Addr().String()) {
			t.Error(log)
		}
	}
}

func TestInvalidMetricsURLsAreRejected(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "https://hc.example.com/uuid": true, "http://pushgateway.monitoring:9091": true, "https://me:s3cret@push.example.com": true,
		"http://me:s3cret@localhost:9091": true, "http://me:s3cret@push.example.com": false, "push.example.com:9091": false,
		"ftp://me:s3cret@push.example.com": false, "http://": false, "https://me:s3cret@%zz": false,
	} {
		for _, f := range []metricsFlags{{pushgateway: text, job: "quorate"}, {heartbeat: text}} {
			if err := f.check(); (err == nil) != ok || err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	if err := (&metricsFlags{pushgateway: "https://push.example.com"}).check(); err == nil {
		t.Error("a job without a name is accepted")
	}
}
