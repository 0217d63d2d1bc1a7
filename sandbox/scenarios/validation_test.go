package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// specs lists declarations with the result that is expected from both the API server and quorate validate: valid, or
// rejected with the given message.
var specs = []struct {
	name    string
	cluster string
	version string
	spec    []string
	refusal string
}{
	{name: "least", version: modern},
	{name: "one", version: modern, spec: []string{one}},
	{name: "nine", version: modern, spec: []string{"replicas: 9"}},
	{name: "even", version: modern, spec: []string{"replicas: 4"}},
	{name: "no replicas", version: modern, spec: []string{"replicas: 0"}, refusal: "greater than or equal to 1"},
	{name: "ten", version: modern, spec: []string{"replicas: 10"}, refusal: "less than or equal to 9"},
	{name: "negative", version: modern, spec: []string{"replicas: -1"}, refusal: "greater than or equal to 1"},
	{name: "many", version: modern, spec: []string{`replicas: "three"`}, refusal: "integer"},
	{name: "no version", version: `""`, refusal: "version"},
	{name: "latest", version: "latest", refusal: "version"},
	{name: "with v", version: "v3.6.16", refusal: "version"},
	{name: "too old", version: "3.4.30", refusal: "only etcd 3 versions from 3.5.3 are supported"},
	{name: "loses data", version: "3.5.1", refusal: "13766"},
	{name: "least that does not", version: "3.5.3"},
	{name: "next", version: "3.10.0"},
	{name: "long name", cluster: strings.Repeat("a", 49), version: modern, refusal: "48"},
	{name: "longest name", cluster: strings.Repeat("a", 48), version: modern},
	{name: "name with digit first", cluster: "1a", version: modern, refusal: "DNS label"},
	{name: "name with dot", cluster: "a.b", version: modern, refusal: "DNS label"},
	{name: "quota over volume", version: modern, spec: []string{"storage: {size: 1Gi}", "etcd: {quota: 2Gi}"}, refusal: "fit into"},
	{name: "quota without unit", version: modern, spec: []string{"etcd: {quota: 8}"}, refusal: "unit"},
	{name: "quota beyond reason", version: modern, spec: []string{"storage: {size: 500Gi}", "etcd: {quota: 200Gi}"}, refusal: "100Gi"},
	{name: "tiny volume", version: modern, spec: []string{"storage: {size: 1Mi}"}, refusal: "256Mi"},
	{name: "no size", version: modern, spec: []string{"storage: {size: lots}"}, refusal: "size"},
	{name: "election under heartbeats", version: modern, spec: []string{"etcd: {heartbeatInterval: 500ms, electionTimeout: 1s}"}, refusal: "five times"},
	{name: "slow hearts", version: modern, spec: []string{"etcd: {heartbeatInterval: 500ms, electionTimeout: 5s}"}},
	{name: "election beyond etcd's", version: modern, spec: []string{"etcd: {electionTimeout: 60s}"}, refusal: "50s"},
	{name: "hour as number", version: modern, spec: []string{"etcd: {autoCompaction: {mode: Periodic, retention: \"1\"}}"}, refusal: "duration"},
	{name: "revisions as hour", version: modern, spec: []string{"etcd: {autoCompaction: {mode: Revision, retention: 1h}}"}, refusal: "number of revisions"},
	{name: "revisions", version: modern, spec: []string{"etcd: {autoCompaction: {mode: Revision, retention: \"1000\"}}"}},
	{name: "unsafe option", version: modern, spec: []string{"etcd: {options: {data-dir: elsewhere}}"}, refusal: "unsafe option"},
	{name: "option", version: modern, spec: []string{"etcd: {options: {max-txn-ops: \"256\"}}"}},
	{name: "small snapshots", version: modern, spec: []string{"etcd: {snapshotCount: 10}"}, refusal: "greater than or equal to 100"},
	{name: "huge requests", version: modern, spec: []string{"etcd: {maxRequestBytes: 100Mi}"}, refusal: "10Mi"},
	{name: "other tls", version: modern, spec: []string{"tls: {mode: Maybe}"}, refusal: "Managed"},
	{name: "other lifecycle", version: modern, spec: []string{"lifecycle: Paused"}, refusal: "Stopped"},
	{name: "tag in repository", version: modern, spec: []string{"image: {repository: \"example.com/etcd:v3.6.16\"}"}, refusal: "repository"},
	{name: "own label", version: modern, spec: []string{"pod: {labels: {app.kubernetes.io/name: mine}}"}, refusal: "reserved for Quorate"},
	{name: "pod", version: modern, spec: []string{"pod: {labels: {team: a}, tolerations: [{key: k, operator: Exists}], nodeSelector: {disk: ssd}, resources: {requests: {cpu: 100m}}}"}},
	{name: "replaceAfter", version: modern, spec: []string{"replaceAfter: soon"}, refusal: "replaceAfter"},
}

// TestValidation checks that the API server, without a webhook, accepts and rejects the same declarations as quorate
// validate.
func TestValidation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, test := range specs {
		t.Run(test.name, func(t *testing.T) {
			if test.cluster == "" {
				test.cluster = "a"
			}
			text := declaration(test.cluster, test.version, test.spec...)
			checkVerdict(t, "the API server", test.refusal, w.askAPIServer(t, text))
			checkVerdict(t, "quorate validate", test.refusal, validate(t, text))
		})
	}
}

func checkVerdict(t *testing.T, who, want string, got error) {
	t.Helper()
	switch {
	case want == "" && got != nil:
		t.Errorf("%s refuses it: %v", who, got)
	case want != "" && got == nil:
		t.Errorf("%s accepts it", who)
	case want != "" && !strings.Contains(got.Error(), want):
		t.Errorf("%s refuses it without the message %q: %v", who, want, got)
	}
}

// askAPIServer returns the error with which the API server rejects the object, or nil.
func (w *world) askAPIServer(t *testing.T, text string) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	_, err := w.objects.Resource(etcdclusters).Namespace(w.namespace).
		Create(w.ctx(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Fatal(err)
	}
	return err
}

// validate returns the error with which quorate validate rejects the declaration, or nil.
func validate(t *testing.T, text string) error {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r := offline(t, "validate", "--source", dir)
	switch r.code {
	case exitDone:
		return nil
	case exitInvalid:
		return fmt.Errorf("%s%s", r.stdout, r.stderr)
	}
	t.Fatalf("%s", r)
	return nil
}

// TestDefaulting checks that the custom resource contains defaults for fields that git omits.
func TestDefaulting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, unschedulable)})
	w.runUntilWaiting(outside).requireCode(t, exitNotConverged)
	for field, want := range map[string]any{
		"replicas": int64(3), "lifecycle": "Running", "tls.mode": "Managed", "storage.size": "8Gi", "storage.retention": "Retain",
		"image.repository": "gcr.io/etcd-development/etcd", "etcd.heartbeatInterval": "100ms",
		"etcd.electionTimeout": "1000ms", "etcd.maxRequestBytes": "1536Ki", "pod.resources.requests.cpu": "50m",
	} {
		got, _, err := unstructured.NestedFieldNoCopy(w.resource("a").Object, append([]string{"spec"}, strings.Split(field, ".")...)...)
		if err != nil || got != want {
			t.Errorf("spec.%s is %v, want %v: %v", field, got, want, err)
		}
	}
}

// TestInvalidClusterSize checks that invalid sizes in git are rejected with their file and line, and that nothing is
// created for them. A valid cluster declared next to them is still created.
func TestInvalidClusterSize(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 10, -1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			w := newWorld(t)
			w.repository.push(map[string]string{
				"clusters/bad.yaml":  declaration("bad", modern, fmt.Sprintf("replicas: %d", size)),
				"clusters/good.yaml": declaration("good", modern, one, unschedulable),
			})
			for _, r := range []result{w.runFrom(outside, "plan"), w.runUntilWaiting(outside)} {
				if r.requireCode(t, exitInvalid); !r.says("bad.yaml") || !r.says("replicas") {
					t.Errorf("the problem is not reported with its position:\n%s", r)
				}
			}
			var names []string
			for _, o := range w.list(etcdclusters) {
				names = append(names, o.GetName())
			}
			if fmt.Sprint(names) != "[good]" {
				t.Errorf("custom resources %v were created", names)
			}
			if _, err := w.object(statefulSets, "bad"); err == nil {
				t.Error("a StatefulSet was created for the invalid cluster")
			}
			if _, err := w.object(statefulSets, "good"); err != nil {
				t.Errorf("the valid cluster is delayed: %v", err)
			}
		})
	}
}

// TestInvalidUpdate checks that a change that is not allowed for an existing cluster is rejected, and that the cluster
// keeps running with the last applied spec.
func TestInvalidUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, one, "storage: {size: 1Gi}")})
	w.converge()
	want := w.snapshot()
	for name, storage := range map[string]string{"shrink": "{size: 512Mi}", "class": "{size: 1Gi, storageClassName: other}"} {
		w.repository.push(map[string]string{"a.yaml": declaration("a", modern, one, "storage: "+storage)})
		if r := w.run(); (r.code != exitInvalid && r.code != exitBlocked) || (!r.says("shrink") && !r.says("storageClassName")) {
			t.Errorf("%s: %s", name, r)
		}
		if touched := difference(want, w.snapshot()); touched != "" {
			t.Errorf("%s: %s", name, touched)
		}
	}
	w.requireOneCluster("a", 1)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, one, "storage: {size: 1Gi}")})
	w.converge()
	testQuotaOfVolume(t, w)
}

// testQuotaOfVolume checks that an omitted quota is half of the existing volume's size. A larger volume size in git is
// not applied, so it changes neither the quota nor the volume.
func testQuotaOfVolume(t *testing.T, w *world) {
	before := w.pod("a-0").UID
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, one, "storage: {size: 8Gi}")})
	w.run("--until-converged", "--timeout", patience.String()).requireCode(t, exitBlocked).requireRule(t, "a", "NotActedOn")
	if w.pod("a-0").UID != before {
		t.Error("a larger volume in git restarts the member")
	}
	if metrics := w.metrics("a-0"); !strings.Contains(metrics, "etcd_server_quota_backend_bytes 5.36870912e+08") {
		t.Error("etcd's metrics do not show a quota of 512Mi")
	}
}
