package clusters

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestUnwrittenStatusReportsOnlyActions checks that a pass that cannot write the status reports only its actions.
// Otherwise, every later pass would report the same news again.
func TestUnwrittenStatusReportsOnlyActions(t *testing.T) {
	for reason, code := range map[metav1.StatusReason]int{metav1.StatusReasonForbidden: 403, metav1.StatusReasonConflict: 409} {
		for _, acted := range []bool{false, true} {
			var events atomic.Int32
			server := &listServer{t: t, clusters: []string{"a"}}
			client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPatch:
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(code)
					_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
						Status: metav1.StatusFailure, Reason: reason, Code: int32(code)})
				case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events"):
					events.Add(1)
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"kind": "Event", "apiVersion": "events.k8s.io/v1"}`))
				default:
					server.ServeHTTP(w, r)
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			observed, err := New(client, Options{}).Observe(t.Context(), reconcile.Desired{Live: true}, nil)
			if err != nil || len(observed.Clusters) != 1 {
				t.Fatalf("%+v, %v", observed, err)
			}
			entry := report.Cluster{Decision: decide.Decision{Rule: "QuorumLost", Verdict: decide.Block, Message: "no quorum"}}
			if acted {
				entry.Decision.Verdict, entry.Decision.Action = decide.Act, decide.RestartReplica{}
				entry.Outcome = &report.Outcome{Changed: true, Detail: "deleted Pod a-0"}
			}
			news, err := observed.Clusters[0].Report(t.Context(), entry, reconcile.SourceStatus{})
			if refused := code == 403; (err != nil) != refused {
				t.Errorf("%s: %v", reason, err)
			}
			if told := events.Load() > 0; told != acted || (len(news) > 0) != acted {
				t.Errorf("%s, acted %t: %d events, and news %v", reason, acted, events.Load(), news)
			}
		}
	}
}

// TestUnobservedClusterSetsReadyUnknown checks that the Ready condition of a cluster that cannot be observed becomes
// Unknown.
func TestUnobservedClusterSetsReadyUnknown(t *testing.T) {
	var told []string
	server := &listServer{t: t, clusters: []string{"a"}}
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPatch {
			server.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		told = append(told, r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	if err != nil {
		t.Fatal(err)
	}
	observed, err := New(client, Options{}).Observe(t.Context(), reconcile.Desired{Live: true}, nil)
	if err != nil || len(observed.Clusters) != 1 {
		t.Fatalf("%+v, %v", observed, err)
	}
	entry := report.Cluster{Error: "list Pods: forbidden"}
	news, err := observed.Clusters[0].Report(t.Context(), entry, reconcile.SourceStatus{})
	if err != nil || len(news) > 0 || len(told) != 1 {
		t.Fatalf("%v, %v, %q", news, err, told)
	}
	for _, want := range []string{"/a/status ", `"reason":"NotObserved"`, `"status":"Unknown"`, `"message":"list Pods: forbidden"`} {
		if !strings.Contains(told[0], want) {
			t.Errorf("%s is not in %s", want, told[0])
		}
	}
}
