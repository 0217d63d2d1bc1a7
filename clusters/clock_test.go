package clusters

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/status"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestPassUsesAPIServerClock checks that a pass uses the API server's clock, even if the local clock is wrong. It
// recognizes backups, reaches the members, does not consider certificates worn, and sends no more requests than with a
// correct clock.
func TestPassUsesAPIServerClock(t *testing.T) {
	asked := int64(0)
	for _, ahead := range []time.Duration{0, -24 * time.Hour, -time.Hour, time.Hour, 24 * time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			f := newFleetAhead(t, 1, ahead)
			at := metav1.NewTime(f.now().Add(-time.Minute).Truncate(time.Second))
			custom := f.lists["etcdclusters"][0].(*unstructured.Unstructured)
			told := v1alpha1.BackupStatus{Last: &v1alpha1.BackupResult{Job: "c00000-backup-1", Slot: at, StartedAt: at, FinishedAt: at,
				ClusterID: decide.ID(fakeClusterID).String()}}
			text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&told)
			f.check(err)
			f.check(unstructured.SetNestedMap(custom.Object, text, "status", "backup"))

			live := New(f.client, Options{Timeout: 10 * time.Second})
			defer func() { f.check(live.Close(context.Background())) }()
			observed, err := live.Observe(t.Context(), f.desired, nil)
			f.check(err)
			c := observed.Clusters[0].(*cluster)
			s, err := c.State(t.Context())
			f.check(err)
			if apart := f.now().Sub(s.Now).Abs(); apart > time.Minute {
				t.Errorf("the time of the pass is %s", s.Now)
			}
			next := status.New(c.own.Custom, c.target, report.Cluster{State: s, Decision: decide.Decide(s)}, reconcile.SourceStatus{})
			if b := next.Backup; b == nil || b.Last == nil || !b.Last.StartedAt.Equal(&at) {
				t.Errorf("the status lacks the recorded backup: %+v", b)
			}
			f.asked.Store(0)
			r := &reconcile.Reconciler{Source: f, Live: live, Log: slog.New(slog.DiscardHandler), Plan: true}
			for _, c := range r.Pass(t.Context()).Clusters {
				if c.Error != "" || c.Decision.Rule != decide.Converged {
					t.Errorf("%s %s", c.Error, c.Decision)
				}
			}
			if asked == 0 {
				asked = f.asked.Load()
			}
			if n := f.asked.Load(); n != asked {
				t.Errorf("%d requests, but %d if both clocks agree", n, asked)
			}
		})
	}
}

// TestPassFailsWithoutServerTime checks that the state of clusters is unknown if responses do not contain the time,
// because ages are then unknown.
func TestPassFailsWithoutServerTime(t *testing.T) {
	server := &listServer{t: t, clusters: []string{"a"}}
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = []string{"noon"}
		server.ServeHTTP(w, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	observed, err := New(client, Options{}).Observe(t.Context(), reconcile.Desired{Live: true}, nil)
	if err != nil || len(observed.Clusters) != 1 {
		t.Fatalf("%+v, %v", observed, err)
	}
	c := observed.Clusters[0].(*cluster)
	if _, err := c.State(t.Context()); err == nil || !strings.Contains(err.Error(), "do not contain the time") {
		t.Errorf("%v", err)
	}
	if _, err := c.Report(t.Context(), report.Cluster{}, reconcile.SourceStatus{}); err == nil {
		t.Error("a report is written without a known time")
	}
}
