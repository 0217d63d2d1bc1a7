package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
)

// TestEtcdOptions declares options and checks that they affect etcd's behavior and appear in its log.
func TestEtcdOptions(t *testing.T) {
	t.Parallel()
	for _, version := range versionsToTest(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository.push(map[string]string{"a.yaml": declaration("a", version, one,
				"etcd:\n  quota: 256Mi\n  snapshotCount: 12345\n  heartbeatInterval: 150ms\n  electionTimeout: 1500ms\n  maxRequestBytes: 4Ki",
				"  autoCompaction: {mode: Revision, retention: \"1000\"}",
				"  options: {max-txn-ops: \"5\", log-level: debug, max-wals: \"7\"}")})
			w.converge()
			testOptionsInEffect(t, w)
			testOptionsInLog(t, w)
			testOtherSpelling(t, w, version)
		})
	}
}

func testOptionsInEffect(t *testing.T, w *world) {
	if metrics := w.metrics("a-0"); !strings.Contains(metrics, "etcd_server_quota_backend_bytes 2.68435456e+08") {
		t.Error("etcd's metrics do not show a quota of 256Mi")
	}
	m := w.member("a", 0)
	ctx, cancel := m.ctx()
	defer cancel()
	if _, err := m.Put(ctx, "small", strings.Repeat("x", 2<<10)); err != nil {
		t.Errorf("a request of 2Ki is refused: %v", err)
	}
	if _, err := m.Put(ctx, "large", strings.Repeat("x", 6<<10)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a request of 6Ki is not refused: %v", err)
	}
	if err := transaction(ctx, m, 5); err != nil {
		t.Errorf("a transaction of 5 operations is refused: %v", err)
	}
	if err := transaction(ctx, m, 6); err == nil || !strings.Contains(err.Error(), "too many operations") {
		t.Errorf("a transaction of 6 operations is not refused: %v", err)
	}
}

// testOtherSpelling declares the same options in a different notation and checks that no pod is recreated.
func testOtherSpelling(t *testing.T, w *world, version string) {
	pods := w.podUIDs("a")
	w.repository.push(map[string]string{"a.yaml": declaration("a", version, one,
		"etcd:\n  quota: 268435456\n  snapshotCount: 12345\n  heartbeatInterval: 150ms\n  electionTimeout: 1s500ms\n  maxRequestBytes: 4096",
		"  autoCompaction: {mode: Revision, retention: \"1000\"}",
		"  options: {max-txn-ops: \"5\", log-level: debug, max-wals: \"007\"}",
		"pod: {affinity: {podAffinity: {}}, nodeSelector: {}, resources: {requests: {cpu: \"0.05\", memory: 131072Ki}}}")})
	w.converge().requireRule(t, "a", "Converged")
	if now := w.podUIDs("a"); !maps.Equal(now, pods) {
		t.Errorf("a different spelling recreates pods: before %v, after %v", pods, now)
	}
}

func transaction(ctx context.Context, m *member, operations int) error {
	var puts []clientv3.Op
	for i := range operations {
		puts = append(puts, clientv3.OpPut(fmt.Sprint("key", i), ""))
	}
	_, err := m.Txn(ctx).Then(puts...).Commit()
	return err
}

// testOptionsInLog checks the line in which etcd logs its configuration at startup.
func testOptionsInLog(t *testing.T, w *world) {
	log, err := w.kube.CoreV1().Pods(w.namespace).GetLogs("a-0", &corev1.PodLogOptions{}).DoRaw(w.ctx())
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]any{}
	for line := range strings.Lines(string(log)) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && entry["msg"] == "starting an etcd server" {
			said = entry
		}
	}
	for name, want := range map[string]any{
		"heartbeat-interval": "150ms", "election-timeout": "1.5s", "snapshot-count": float64(12345), "max-wals": float64(7),
		"auto-compaction-mode": "revision", "quota-backend-bytes": float64(256 << 20),
	} {
		if got, found := said[name]; !found || got != want {
			t.Errorf("etcd starts with %s %v, want %v", name, got, want)
		}
	}
	if !strings.Contains(string(log), `"level":"debug"`) {
		t.Error("etcd logs nothing at level debug")
	}
}
