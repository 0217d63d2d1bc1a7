package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// seenFleet returns one cluster of each kind: healthy, waiting, blocked, being bootstrapped, stopped, and unobservable.
func seenFleet() []report.Cluster {
	custom := func(status v1alpha1.EtcdClusterStatus) *v1alpha1.EtcdCluster {
		return &v1alpha1.EtcdCluster{Status: status}
	}
	condition := func(kind, reason string, since time.Duration) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "said then", LastTransitionTime: metav1.NewTime(noon.Add(-since))}}
	}
	well := func(name string) decide.State {
		s := decide.State{Name: name, Now: noon, Membership: decide.Membership{Known: true, ClusterID: 0xc1}}
		s.Declared.Lifecycle, s.Declared.Quota, s.Record.ClusterID = decide.Running, 8<<30, 0xc1
		for i := range 3 {
			m := decide.Member{ID: decide.ID(0xa0 + i), Name: s.ReplicaName(i), Started: true, Answers: true, Leader: i == 1, Version: "3.6.16", DBSize: 1288490189 + int64(i), DBSizeInUse: 5 << 20}
			s.Membership.Members = append(s.Membership.Members, m)
			s.Replicas = append(s.Replicas, decide.Replica{Ordinal: i, Pod: decide.PodReady, VolumeUID: "uid-" + m.Name})
		}
		return s
	}
	a := report.Cluster{Namespace: "prod", Name: "a", State: well("a"), Decision: decide.Decision{Rule: decide.Converged, Verdict: decide.Done, Message: "as declared"}}
	a.Custom = custom(v1alpha1.EtcdClusterStatus{DeclaredRevision: "main@sha1:c4281fbf5d8a69aec1d024a4bb4c802c20d00300", DeclaredSource: "https://git.example.com/fleet.git",
		DeclaredRevisionTime: &metav1.Time{Time: noon.Add(30*time.Second - 75*time.Hour)},
		Conditions:           condition(v1alpha1.ConditionReady, decide.Converged, 50*time.Hour)})
	a.State.Declared.BacksUp, a.State.Backups.Last = true, &decide.Backup{Slot: noon.Add(-90 * time.Minute), Revision: 18204, Verified: true, To: "s3://backups/etcd"}
	a.State.Certificates = []decide.Certificate{{Secret: "a-ca", Key: "ca.crt", CA: true, NotBefore: noon.AddDate(-1, 0, 0), NotAfter: noon.AddDate(9, 0, 0)}}

	a.Events = []report.Event{
		{Object: "Pod a-1", Warning: true, Reason: "Unhealthy", Note: "Readiness probe failed: HTTP probe failed with statuscode: 503", At: noon.Add(-49 * time.Hour), Count: 4},
		{Object: "EtcdCluster a", Reason: "Converged", Note: "as declared", At: noon.Add(-48 * time.Hour), Count: 1},
	}

	b := report.Cluster{Namespace: "prod", Name: "b", State: well("b"), Decision: decide.Decision{Rule: "WaitForMembers", Verdict: decide.Wait, Message: "2 of 3 voters respond; b-2 is not responding (pod pending)"}}
	b.State.Waited = []decide.Waited{{Rule: "WaitForMembers", Since: noon.Add(-12 * time.Minute), Seen: noon}}
	b.State.Membership.Members[0].Version = "3.7.3"
	b.State.Membership.Members[2] = decide.Member{ID: 0xa2, Name: "b-2", Started: true, Why: "connection refused"}
	b.State.Membership.Members = append(b.State.Membership.Members, decide.Member{ID: 0xa3, Name: "b-3", Started: true, Answers: true, Learner: true, Version: "3.7.3"})
	b.State.Declared.BacksUp, b.State.Declared.Quota = true, 0
	b.State.Replicas[2] = decide.Replica{Ordinal: 2, Pod: decide.PodPending, PodMessage: "no node has room"}
	b.Custom = custom(v1alpha1.EtcdClusterStatus{DeclaredRevision: "odd"})

	c := report.Cluster{Namespace: "prod", Name: "c", State: well("c"), Decision: decide.Decision{Rule: "QuorumLost", Verdict: decide.Block, Message: "no quorum: 1 of 3 voters responds, 2 required"}}
	c.State.Membership = decide.Membership{Why: "no leader"}
	c.Custom = custom(v1alpha1.EtcdClusterStatus{Conditions: condition(v1alpha1.ConditionStalled, "QuorumLost", time.Hour)})

	c.NoEvents = "list events of EtcdCluster c: forbidden"

	d := report.Cluster{Namespace: "shop", Name: "new", State: decide.State{Name: "new", Now: noon, Declared: decide.Declared{Lifecycle: decide.Running}},
		Decision: decide.Decision{Rule: "Bootstrap", Verdict: decide.Act, Action: decide.Bootstrap{}, Message: "the cluster does not exist yet"}}
	e := report.Cluster{Namespace: "shop", Name: "old", State: decide.State{Name: "old", Now: noon, Declared: decide.Declared{Lifecycle: decide.Stopped}, Record: decide.Record{ClusterID: 0xc2}},
		Decision: decide.Decision{Rule: "Stopped", Verdict: decide.Done, Message: "stopped"}}
	f := report.Cluster{Namespace: "shop", Name: "unseen", State: decide.State{Name: "unseen"}, Error: "observe shop/unseen: list Pods: forbidden"}
	return []report.Cluster{a, b, c, d, e, f}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if flag.Lookup("rewrite").Value.String() == "true" { // datadriven defines this flag

		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v; got\n%s\nwant\n%s", name, err, got, want)
	}
}

// TestTable checks that the table has one line per cluster, and does not show a number for an unknown value.
func TestTable(t *testing.T) {
	for name, style := range map[string]report.Style{"table.txt": {}, "table-80.txt": {Width: 80}, "table-120.txt": {Width: 120}, "table-36.txt": {Width: 36}} {
		var b bytes.Buffer
		if err := report.Table(&b, report.Report{Clusters: seenFleet()}, style); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
		for line := range strings.Lines(b.String()) {
			if wide := len([]rune(line)) - 1; style.Width > 0 && wide > style.Width {
				t.Errorf("%s: %d columns: %s", name, wide, line)
			}
		}
		style.Colour = true
		var painted bytes.Buffer
		_ = report.Table(&painted, report.Report{Clusters: seenFleet()}, style)
		plain := painted.String()
		for _, code := range []string{"\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"} {
			if !strings.Contains(plain, code) {
				t.Errorf("%s: no text has the color %q", name, code)
			}
			plain = strings.ReplaceAll(plain, code, "")
		}
		if plain != b.String() {
			t.Errorf("%s: color changes the text:\n%s", name, plain)
		}
	}
}

func TestTableWithoutClusters(t *testing.T) {
	var b bytes.Buffer
	if err := report.Table(&b, report.Report{}, report.Style{Width: 80}); err != nil || b.String() != "no clusters\n" {
		t.Errorf("%v %q", err, b.String())
	}
}

func TestDetail(t *testing.T) {
	var b bytes.Buffer
	for _, c := range seenFleet() {
		if err := report.Detail(&b, c, report.Style{}); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "detail.txt", b.String())
}

func TestSort(t *testing.T) {
	for order, want := range map[string]string{
		"name": "a b c new old unseen", "state": "c unseen b new a old", "size": "a b c new old unseen", "age": "b c a new old unseen",
	} {
		clusters := seenFleet()
		clusters[0], clusters[5] = clusters[5], clusters[0]
		report.Sort(clusters, order)
		var got []string
		for _, c := range clusters {
			got = append(got, c.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("by %s: %s, want %s", order, got, want)
		}
	}
	if len(report.Orders) != 4 {
		t.Errorf("%q", report.Orders)
	}
}
