package adoption

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile/decide"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected output in testdata/adoption")

// section returns the content of a file in an archive, or "" if the file does not exist.
func section(a *txtar.Archive, name string) string {
	for _, file := range a.Files {
		if file.Name == name {
			return string(file.Data)
		}
	}
	return ""
}

// running returns the membership that three members of a source report.
func running(version string) decide.Membership {
	m := decide.Membership{Known: true, ClusterID: 0xcdf818194e3a8c32}
	for i := range 3 {
		m.Members = append(m.Members, decide.Member{ID: decide.ID(i + 1), Name: fmt.Sprint("etcd-", i), Version: version,
			Answers: true, DBSize: 12<<20 + 1})
	}
	return m
}

// TestGolden inspects the source in each file, as if etcd had responded, and compares the output with the file. Each
// declaration must be valid.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("../../testdata/adoption/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			plan := Plan{Name: "orders", CASecretName: strings.TrimSpace(section(archive, "ca-secret"))}
			source := describeFiles(t, archive)
			in := Inspection{Source: source, Plan: plan, Problems: source.Problems(plan)}
			if source.canBeQueried(plan) {
				in.Reported = running("3.6.16")
				in.Declaration, in.Dropped = source.Draft(plan, in.Reported)
				checkValid(t, in.Declaration)
			}
			var out bytes.Buffer
			if err := in.Write(&out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(section(archive, "output"), out.String()); diff != "" {
				if !*rewrite {
					t.Errorf("run the test with -rewrite if this is intended:\n%s", diff)
					return
				}
				archive.Files = append(without(archive.Files, "output"), txtar.File{Name: "output", Data: out.Bytes()})
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func without(files []txtar.File, name string) (rest []txtar.File) {
	for _, file := range files {
		if file.Name != name {
			rest = append(rest, file)
		}
	}
	return rest
}

func describe(t *testing.T, text string) Source {
	t.Helper()
	var set appsv1.StatefulSet
	decode(t, text, &set)
	source, err := Describe(&set, nil)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// describeFiles describes the StatefulSet or the pods in an archive, and the custom resource, if any.
func describeFiles(t *testing.T, archive *txtar.Archive) Source {
	t.Helper()
	var custom *CustomResource
	if text := section(archive, "custom.yaml"); text != "" {
		custom = customResource(t, text)
	}
	var set appsv1.StatefulSet
	decode(t, section(archive, "statefulset.yaml"), &set)
	if set.Name != "" {
		source, err := Describe(&set, custom)
		if err != nil {
			t.Fatal(err)
		}
		return source
	}
	var pods struct {
		Pods   []corev1.Pod
		Claims []corev1.PersistentVolumeClaim
	}
	if err := yaml.Unmarshal([]byte(section(archive, "pods.yaml")), &pods); err != nil { // not strict, because of merge keys
		t.Fatal(err)
	}
	source, err := DescribePods(custom, pods.Pods, pods.Claims)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func customResource(t *testing.T, text string) *CustomResource {
	t.Helper()
	var object unstructured.Unstructured
	decode(t, text, &object.Object)
	kind := kindOf(&metav1.OwnerReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind()})
	if kind == nil {
		t.Fatalf("%s %s is unknown", object.GetAPIVersion(), object.GetKind())
	}
	return DescribeCustomResource(kind, &object)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// checkValid fails the test if the API server would reject the declaration.
func checkValid(t *testing.T, declaration map[string]any) {
	t.Helper()
	if err := check(declaration); err != nil {
		t.Error(err)
	}
}

// TestStatefulSetWithoutEtcdIsRejected checks that only StatefulSets that run etcd are described.
func TestStatefulSetWithoutEtcdIsRejected(t *testing.T) {
	var set appsv1.StatefulSet
	if err := yaml.Unmarshal([]byte("spec: {template: {spec: {containers: [{name: web, image: etcd.example.com/web}]}}}"), &set); err != nil {
		t.Fatal(err)
	}
	if s, err := Describe(&set, nil); err == nil {
		t.Errorf("Describe returned %+v instead of an error", s)
	}
}

// TestHostileTextStaysInComments checks that text from Kubernetes and etcd cannot end a comment and change the
// declaration.
func TestHostileTextStaysInComments(t *testing.T) {
	for name, text := range printabletest.Hostile {
		source := Source{Namespace: "prod", Kind: text, Name: "etcd", Hosts: []string{"etcd-0.etcd.prod.svc"}, Members: 1, ClientPort: 2379,
			Owner: text, Custom: &CustomResource{Kind: kinds[0], Name: text, Fields: []string{"spec." + text, text}}, Patterns: []string{text}, Options: map[string]string{text: "x", "auto-compaction-retention": text, "peer-cert-allowed-cn": text}}
		in := Inspection{Source: source, Reported: running(text), Problems: append(source.Problems(Plan{}), text)}
		in.Declaration, in.Dropped = source.Draft(Plan{Name: "orders"}, in.Reported)
		var out bytes.Buffer
		if err := in.Write(&out); err != nil {
			t.Fatal(err)
		}
		if unfit := printabletest.Unfit(out.String()); unfit != "" {
			t.Errorf("%s: %s:\n%.300q", name, unfit, out.String())
		}
		var read map[string]any
		if err := yaml.Unmarshal(out.Bytes(), &read); err != nil || !cmp.Equal(asJSON(t, read), asJSON(t, in.Declaration)) {
			t.Errorf("%s: the declaration was changed: %v", name, cmp.Diff(in.Declaration, read))
		}
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// script returns a StatefulSet with three replicas and a volume of the given size, whose container runs a script.
func script(size, text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return "metadata: {name: etcd, namespace: prod}\nspec:\n  serviceName: etcd\n  replicas: 3\n  template:\n    spec:\n      containers:\n" +
		"      - name: etcd\n        image: etcd:3.6.16\n        volumeMounts: [{name: data, mountPath: /data}]\n        command:\n        - sh\n        - -c\n        - |\n          " +
		strings.Join(lines, "\n          ") +
		"\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: " + size + "}}}}]\n"
}

// TestOptionsAreConverted checks the fields of spec.etcd, and the options that are not carried over.
func TestOptionsAreConverted(t *testing.T) {
	for name, test := range map[string]struct {
		size, options string
		want          string // spec.etcd as JSON
		dropped       string
	}{
		"default quota":                 {"16Gi", "", `{"quota":"2Gi"}`, ""},
		"default quota, 0":              {"16Gi", "--quota-backend-bytes=0", `{"quota":"2Gi"}`, ""},
		"default quota, full":           {"1Gi", "--name x", `null`, "quota-backend-bytes"},
		"quota by a variable":           {"16Gi", "--quota-backend-bytes=$(QUOTA)", `null`, "quota-backend-bytes"},
		"negative quota":                {"16Gi", "--quota-backend-bytes=-1", `null`, "quota-backend-bytes"},
		"large requests":                {"16Gi", "--max-request-bytes=335544320", `{"quota":"2Gi"}`, "max-request-bytes"},
		"compaction is off":             {"16Gi", "--auto-compaction-retention=0s", `{"quota":"2Gi"}`, ""},
		"compaction, 1.5h":              {"16Gi", "--auto-compaction-retention=1.5h", `{"quota":"2Gi"}`, "auto-compaction-retention"},
		"compaction by a variable":      {"16Gi", "--auto-compaction-mode=$(MODE) --auto-compaction-retention=1000", `{"quota":"2Gi"}`, "auto-compaction-retention"},
		"compaction in hours":           {"16Gi", "--auto-compaction-retention 12", `{"autoCompaction":{"mode":"Periodic","retention":"12h"},"quota":"2Gi"}`, ""},
		"compaction of revisions":       {"16Gi", "--auto-compaction-mode=revision --auto-compaction-retention=1000", `{"autoCompaction":{"mode":"Revision","retention":"1000"},"quota":"2Gi"}`, ""},
		"both intervals":                {"16Gi", "--heartbeat-interval=300 --election-timeout=3000", `{"electionTimeout":"3000ms","heartbeatInterval":"300ms","quota":"2Gi"}`, ""},
		"only a heartbeat":              {"16Gi", "--heartbeat-interval=500", `{"quota":"2Gi"}`, "heartbeat-interval"},
		"experimental name":             {"16Gi", "--experimental-corrupt-check-time=1h", `{"options":{"corrupt-check-time":"1h"},"quota":"2Gi"}`, ""},
		"settings that need each other": {"16Gi", "--heartbeat-interval=20 --election-timeout=200 --max-request-bytes=335544320", `{"electionTimeout":"200ms","heartbeatInterval":"20ms","quota":"2Gi"}`, "max-request-bytes"},
		"empty quota":                   {"1Gi", "--quota-backend-bytes=", `null`, "quota-backend-bytes"},
		"unknown experiment":            {"16Gi", "--experimental-enable-lease-checkpoint", `{"quota":"2Gi"}`, "experimental-enable-lease-checkpoint"},
		"log level by a variable":       {"16Gi", "--log-level=$(LEVEL)", `{"quota":"2Gi"}`, "log-level"},
		"options of a second command":   {"16Gi", "--max-txn-ops=256 && rm -rf --quota-backend-bytes", `{"options":{"max-txn-ops":"256"}}`, "quota-backend-bytes"},
	} {
		source := describe(t, script(test.size, "exec etcd --data-dir=/data/etcd --listen-client-urls=http://0.0.0.0:2379 "+test.options))
		declaration, dropped := source.Draft(Plan{Name: "orders"}, running("3.6.16"))
		checkValid(t, declaration)
		got, err := json.Marshal(declaration["spec"].(map[string]any)["etcd"])
		if err != nil || string(got) != test.want || strings.Join(dropped.Options, " ") != test.dropped {
			t.Errorf("%s: spec.etcd %s, want %s; dropped %q, want %q; %v", name, got, test.want, dropped, test.dropped, err)
		}
	}
}

// TestProblemsAndStepsFollowOptions checks what the options in a script cause to be reported.
func TestProblemsAndStepsFollowOptions(t *testing.T) {
	const (
		secure     = " --listen-client-urls=https://0.0.0.0:2379 --trusted-ca-file=/ca --peer-cert-file=/p "
		auto       = " --listen-client-urls=https://0.0.0.0:2379 --trusted-ca-file=/ca --peer-client-cert-auth "
		anonymous  = "The source accepts clients without certificates"
		expels     = "a restart would remove all other members"
		peersOnly  = "its members use TLS only for peers"
		autoTLS    = "its members create their own certificates"
		unverified = "peer-client-cert-auth is off"
		elsewhere  = "Other objects or files set"
	)
	for options, want := range map[string]string{
		secure + "--peer-client-cert-auth \\\n --name x":                         "",
		auto + "--peer-client-cert-auth --peer-auto-tls \\\n --name x":           autoTLS,
		auto + "--peer-auto-tls && true":                                         autoTLS,
		secure + "--peer-client-cert-auth --peer-auto-tls":                       "",
		secure + "--peer-client-cert-auth --peer-auto-tls=False":                 "",
		secure + "--peer-client-cert-auth=0":                                     unverified,
		secure + "--peer-client-cert-auth=$(VERIFY)":                             "",
		secure + "--peer-trusted-ca-file=/ca":                                    "",
		"--config-file=/etc/etcd.yaml --listen-client-urls=https://0.0.0.0:2379": elsewhere,
		"": elsewhere,
		"--listen-client-urls=https://0.0.0.0:2379":                                              anonymous,
		secure + "--peer-client-cert-auth --force-new-cluster":                                   expels,
		"--listen-client-urls=http://0.0.0.0:2379 --peer-client-cert-auth --trusted-ca-file=/ca": peersOnly,
	} {
		source := describe(t, script("16Gi", "exec etcd "+options))
		said := strings.Join(append(source.Problems(Plan{Name: "orders", CASecretName: "ca"}), source.Steps(Plan{CASecretName: "ca"}, Dropped{})...), "\n")
		for _, text := range []string{expels, peersOnly, autoTLS, unverified, elsewhere, anonymous} {
			if strings.Contains(said, text) != (text == want) {
				t.Errorf("%q: want %q:\n%s", options, want, said)
			}
		}
	}
}

// TestClientPortIsThatOfListener checks the port and the use of TLS.
func TestClientPortIsThatOfListener(t *testing.T) {
	for options, want := range map[string]Source{
		"--listen-client-urls=http://127.0.0.1:2379,https://0.0.0.0:2479":                              {TLS: WithTLS, ClientPort: 2479},
		"--listen-client-urls=https://0.0.0.0:2379 --advertise-client-urls=https://lb.example.com:443": {TLS: WithTLS, ClientPort: 2379},
		"--advertise-client-urls=http://$(POD).etcd:2579/":                                             {TLS: WithoutTLS, ClientPort: 2579},
		"--advertise-client-urls=$(SCHEME)://$(POD).etcd:2579":                                         {TLS: TLSUnknown, ClientPort: 2379},
		"--cert-file=/c --listen-client-urls=http://0.0.0.0:2379":                                      {TLS: WithoutTLS, ClientPort: 2379},
		"--cert-file=/c": {TLS: WithTLS, ClientPort: 2379},
		"--listen-client-urls http://[::1]:1,http://localhost:2": {TLS: TLSUnknown, ClientPort: 2379},
		"": {TLS: TLSUnknown, ClientPort: 2379},
	} {
		if got := describe(t, script("1Gi", "etcd "+options)); got.TLS != want.TLS || got.ClientPort != want.ClientPort {
			t.Errorf("%q: TLS %d on port %d, want %d on port %d", options, got.TLS, got.ClientPort, want.TLS, want.ClientPort)
		}
	}
}

// TestDataVolumeContainsDataDirectory checks that another volume of the container does not count as the data volume.
func TestDataVolumeContainsDataDirectory(t *testing.T) {
	for mounts, want := range map[string]string{
		"{name: data, mountPath: /var/lib}":                                              "16Gi",
		"{name: backup, mountPath: /backup}":                                             "0",
		"{name: backup, mountPath: /var}, {name: data, mountPath: /var/lib/etcd/}":       "16Gi",
		"{name: data, mountPath: /var}, {name: scratch, mountPath: /var/lib/etcd}":       "0",
		"{name: data, mountPath: /var/lib/etcd2}, {name: backup, mountPath: /var/lib/e}": "0",
	} {
		source := describe(t, `
metadata: {name: etcd, namespace: prod}
spec:
  serviceName: etcd
  ordinals: {start: 5}
  template: {spec: {containers: [{name: etcd, image: etcd, args: [--data-dir=/var/lib/etcd], volumeMounts: [`+mounts+`]}]}}
  volumeClaimTemplates:
  - {metadata: {name: backup}, spec: {resources: {requests: {storage: 100Gi}}}}
  - {metadata: {name: data}, spec: {resources: {requests: {storage: 16Gi}}}}
`)
		if got := source.Storage.String(); got != want {
			t.Errorf("%s: %s, want %s", mounts, got, want)
		}
		if got := source.endpoints("http"); len(got) != 1 || got[0] != "http://etcd-5.etcd.prod.svc:2379" {
			t.Errorf("endpoints %q", got)
		}
	}
}

// TestContainerOfEtcdIsFound checks that a sidecar is not taken for etcd.
func TestContainerOfEtcdIsFound(t *testing.T) {
	const exporter = "{name: exporter, image: r/etcd-exporter:1}"
	for _, etcd := range []string{"name: main, image: r:5000/etcd:v3.6.4", "name: etcd, image: wrapper", "name: main, image: wrapper"} {
		source := describe(t, "spec: {template: {spec: {containers: ["+exporter+", {"+etcd+", args: [--listen-client-urls=http://0.0.0.0:2479, --listen-peer-urls=http://0.0.0.0:2380]}]}}}")
		if source.ClientPort != 2479 {
			t.Errorf("%s: the options are %v", etcd, source.Options)
		}
	}
}

// TestInvalidServiceNameIsRejected checks that a name cannot lead to other hosts or widen the pattern to allow.
func TestInvalidServiceNameIsRejected(t *testing.T) {
	for _, name := range []string{"a.evil", "x:2379 and *. 6. Run", "*", "-"} {
		set := &appsv1.StatefulSet{}
		set.Spec.ServiceName = name
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "etcd"}}
		if s, err := Describe(set, nil); err == nil {
			t.Errorf("%q: %+v", name, s)
		}
	}
}

// TestEnvironmentFromOtherObjectsIsNoticed checks which environment variables may contain options that are not visible.
func TestEnvironmentFromOtherObjectsIsNoticed(t *testing.T) {
	for environment, want := range map[string]bool{
		"envFrom: [{configMapRef: {name: options}}]":                                                         true,
		"env: [{name: ETCD_QUOTA_BACKEND_BYTES, valueFrom: {configMapKeyRef: {name: options, key: quota}}}]": true,
		"env: [{name: ETCD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]":                        false,
		"env: [{name: ETCD_ROOT_PASSWORD, valueFrom: {secretKeyRef: {name: etcd, key: password}}}]":          false,
		"env: [{name: QUOTA, valueFrom: {configMapKeyRef: {name: options, key: quota}}}]":                    false,
	} {
		source := describe(t, "spec: {template: {spec: {containers: [{name: etcd, args: [--listen-client-urls=http://0.0.0.0:2379], "+environment+"}]}}}")
		if source.Elsewhere != want {
			t.Errorf("%s: noticed: %v", environment, source.Elsewhere)
		}
	}
}

// TestTargetFieldsExist checks that an EtcdCluster has every field that an operator's field is carried over to, and that
// every field that is not carried over has a reason.
func TestTargetFieldsExist(t *testing.T) {
	for _, kind := range kinds {
		for path, field := range kind.Fields {
			if field.To == "" && field.Reason == "" {
				t.Errorf("%s %s: no reason", kind.Resource, path)
			}
			if at := reflect.TypeFor[v1alpha1.EtcdCluster](); field.To != "" && !hasField(at, strings.Split(field.To, ".")) {
				t.Errorf("%s %s: an EtcdCluster does not have the field %s", kind.Resource, path, field.To)
			}
		}
	}
}

// hasField reports whether a type has a field with the given path in JSON.
func hasField(at reflect.Type, path []string) bool {
	if at.Kind() == reflect.Pointer {
		at = at.Elem()
	}
	if len(path) == 0 {
		return true
	}
	if at.Kind() == reflect.Map {
		return len(path) == 1
	}
	for i := range at.NumField() {
		field := at.Field(i)
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == path[0] {
			return hasField(field.Type, path[1:])
		}
	}
	return false
}

// TestFieldsOfCustomResourceAreListed checks which fields of a custom resource are listed, and how they are described.
func TestFieldsOfCustomResourceAreListed(t *testing.T) {
	const head = "apiVersion: operator.etcd.io/v1alpha1\nkind: EtcdCluster\nmetadata: {name: a, namespace: b}\n"
	declared := map[string]any{"spec": map[string]any{"replicas": int64(3), "storage": map[string]any{}}}
	for spec, want := range map[string]string{
		"spec: {size: 3}":                                  "spec.size: spec.replicas",
		"spec: {version: ''}":                              "",
		"spec: {etcdOptions: [], tls: {}, size: null}":     "",
		"spec: {tls: {provider: auto}}":                    "spec.tls: not carried over; " + caInstead,
		"spec: {storageSpec: {pvcName: x}}":                "spec.storageSpec.pvcName: not carried over; " + ownVolumes,
		"spec: {storageSpec: x}":                           "spec.storageSpec: not carried over; " + ownVolumes,
		"spec: {storageSpec: {volumeSizeRequest: 1}}":      "spec.storageSpec.volumeSizeRequest: not carried over; the members run without it, or spec.storage.size does not accept it",
		"spec: {podTemplate: {spec: {hostNetwork: true}}}": "spec.podTemplate.spec.hostNetwork: not carried over; the field is unknown",
		"spec: {podTemplates: 1, size: false}":             "spec.podTemplates: not carried over; the field is unknown|spec.size: spec.replicas",
		"spec: 7":                                          "spec: not carried over; the field is unknown",
		"status: {}":                                       "",
		"spec: {etcdOptions: [--pre-vote=false]}":          "spec.etcdOptions: not carried over; the members run without it, or spec.etcd does not accept it",
		"spec: {'': {'': 1}}":                              "spec.: not carried over; the field is unknown",
	} {
		if got := strings.Join(customResource(t, head+spec).fieldLines(declared), "|"); got != want {
			t.Errorf("%s: got %q, want %q", spec, got, want)
		}
	}
	many := map[string]any{}
	for i := range 3 * maxFields {
		many[fmt.Sprint("field", i)] = int64(i)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": many}}
	lines := DescribeCustomResource(kinds[0], object).fieldLines(nil)
	if last := lines[len(lines)-1]; len(lines) != maxFields+1 || last != "200 other fields" {
		t.Errorf("%d lines, the last one is %q", len(lines), last)
	}
}

// TestUnpausedOperatorIsReported checks that a custom resource is reported as a problem until its operator is paused.
func TestUnpausedOperatorIsReported(t *testing.T) {
	for text, want := range map[string]bool{
		"apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nspec: {paused: true}":                                                  false,
		"apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nspec: {paused: 'true'}":                                                true,
		"apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster":                                                                        true,
		"apiVersion: druid.gardener.cloud/v1alpha1\nkind: Etcd\nmetadata: {annotations: {druid.gardener.cloud/suspend-etcd-spec-reconcile: ''}}": false,
		"apiVersion: druid.gardener.cloud/v1alpha1\nkind: Etcd":                                                                                  true,
		"apiVersion: etcd.aenix.io/v1alpha1\nkind: EtcdCluster":                                                                                  false,
	} {
		if got := len(customResource(t, text).problems()) > 0; got != want {
			t.Errorf("%s: reported: %v", text, got)
		}
	}
}

// TestPodsWithoutDNSNamesAreReported checks that either every pod has an endpoint, or none does and
// this is reported.
func TestPodsWithoutDNSNamesAreReported(t *testing.T) {
	owner := []metav1.OwnerReference{{Kind: "EtcdCluster", UID: "1", Controller: new(true)}}
	pod := func(name, hostname, subdomain string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owner}, Spec: corev1.PodSpec{Hostname: hostname, Subdomain: subdomain, Containers: []corev1.Container{{Name: "etcd"}}}}
	}
	custom := customResource(t, "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: a, namespace: b, uid: \"1\"}\nspec: {paused: true}")
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"named":            {[]corev1.Pod{pod("a-1", "a-1", "a"), pod("a-0", "a-0", "a")}, "[http://a-0.a.b.svc:2379 http://a-1.a.b.svc:2379] [a-*.a.b.svc]"},
		"other name":       {[]corev1.Pod{pod("x", "x", "a")}, "[http://x.a.b.svc:2379] [x.a.b.svc]"},
		"without Service":  {[]corev1.Pod{pod("a-0", "a-0", "a"), pod("a-1", "a-1", "")}, "[] []"},
		"without hostname": {[]corev1.Pod{pod("a-0", "a-0", "a"), pod("a-1", "", "a")}, "[] []"},
		"other hostname":   {[]corev1.Pod{pod("a-0-x7k2p", "a-0", "a")}, "[] []"},
		"not a label":      {[]corev1.Pod{pod("a-0.evil", "a-0.evil", "a")}, "[] []"},
	} {
		source, err := DescribePods(custom, test.pods, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(source.endpoints("http"), source.Patterns); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		if reported := strings.Contains(strings.Join(source.Problems(Plan{Name: "new"}), "\n"), "do not have DNS names that begin"); reported != (test.want == "[] []") {
			t.Errorf("%s: reported: %v", name, reported)
		}
	}
}

// TestOnlyMemberPodsCount checks that pods that have the operator's labels but do not run a member are ignored.
func TestOnlyMemberPodsCount(t *testing.T) {
	custom := customResource(t, "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: a, namespace: b, uid: \"1\"}")
	for text, want := range map[string]int{
		"{}": 0,
		"{metadata: {ownerReferences: [{kind: EtcdCluster, uid: '1', controller: true}]}}":                                            1,
		"{metadata: {ownerReferences: [{kind: EtcdCluster, uid: '2', controller: true}]}}":                                            0,
		"{metadata: {ownerReferences: [{kind: EtcdCluster, uid: '1'}]}}":                                                              0,
		"{metadata: {ownerReferences: [{kind: Job, uid: '1', controller: true}]}}":                                                    0,
		"{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', ownerReferences: [{kind: EtcdCluster, uid: '1', controller: true}]}}": 0,
		"{status: {phase: Failed}, metadata: {ownerReferences: [{kind: EtcdCluster, uid: '1', controller: true}]}}":                   0,
	} {
		var pod corev1.Pod
		decode(t, text, &pod)
		pod.Spec.Containers = []corev1.Container{{Name: "etcd"}}
		source, err := DescribePods(custom, []corev1.Pod{pod}, nil)
		if err != nil || source.Members != want {
			t.Errorf("%s: %d members, want %d: %v", text, source.Members, want, err)
		}
	}
}

// TestDifferencesBetweenPodsAreReported checks that one pod's settings do not hide those of the others.
func TestDifferencesBetweenPodsAreReported(t *testing.T) {
	custom := customResource(t, "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: a, namespace: b, uid: \"1\"}\nspec: {paused: true}")
	var pods []corev1.Pod
	for name, spec := range map[string]string{
		"a-0": "args: ['--listen-client-urls=http://0.0.0.0:2379', --name=a-0, --data-dir=/data]",
		"a-1": "args: ['--listen-client-urls=http://0.0.0.0:2379', --name=a-1, --data-dir=/data, --quota-backend-bytes=8589934592, --pre-vote=false], volumeMounts: [{name: data, mountPath: /data}]",
	} {
		var pod corev1.Pod
		decode(t, "{metadata: {name: "+name+", ownerReferences: [{kind: EtcdCluster, uid: '1', controller: true}]}, spec: {hostname: "+name+", subdomain: a, "+
			"volumes: [{name: data, persistentVolumeClaim: {claimName: c}}], containers: [{name: etcd, image: etcd, "+spec+"}]}}", &pod)
		pods = append(pods, pod)
	}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	claim.Spec.StorageClassName = new("fast")
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Gi")}
	source, err := DescribePods(custom, pods, []corev1.PersistentVolumeClaim{claim})
	if err != nil {
		t.Fatal(err)
	}
	declaration, dropped := source.Draft(Plan{Name: "new"}, running("3.6.16"))
	checkValid(t, declaration)
	if text := asJSON(t, declaration["spec"]); !strings.Contains(text, `"quota":"8Gi"`) || !strings.Contains(text, `"size":"16Gi"`) {
		t.Errorf("want a-1's quota and volume size: %s", text)
	}
	said := strings.Join(source.Steps(Plan{}, dropped), "\n")
	for _, want := range []string{"differ between the pods: pre-vote and quota-backend-bytes.", "No data volume was found for some members"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing:\n%s", want, said)
		}
	}
	if source.StorageClass == nil || *source.StorageClass != "fast" {
		t.Errorf("the storage class is not that of the larger volume: %v", source.StorageClass)
	}
	for i := range pods {
		if pods[i].Name == "a-1" {
			pods[i].Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{}}
			pods[i].Spec.NodeSelector = map[string]string{"disk": "ssd"}
		}
	}
	if source, err = DescribePods(custom, pods, nil); err != nil || !source.Elsewhere || !slices.Contains(source.Differences, "nodeSelector") {
		t.Errorf("differences of a-1 are not reported: %+v, %v", source, err)
	}
	pods[0].Spec.Containers[0].Args[0] = "--listen-client-urls=http://0.0.0.0:2479"
	if source, err = DescribePods(custom, pods, nil); err != nil || !source.Mixed {
		t.Errorf("a pod with a different port is not reported: %v", err)
	}
	pods[0].Spec.Containers[0].Args[0] = "--listen-client-urls=http://0.0.0.0:2379 --peer-cert-allowed-cn=x"
	if source, err = DescribePods(custom, pods, nil); err != nil || !source.Mixed {
		t.Errorf("a pod with a different option for TLS is not reported: %v", err)
	}
	pods[0].Spec.Containers[0].Args[0] = "--listen-client-urls=https://0.0.0.0:2379"
	if source, err = DescribePods(custom, pods, nil); err != nil || !strings.Contains(strings.Join(source.Problems(Plan{}), "\n"), "different client ports or options for TLS") {
		t.Errorf("one pod with TLS is not reported: %v, %v", source.Problems(Plan{}), err)
	}
}

// TestPodFieldsAreConverted checks which fields of a pod are carried over to spec.pod, and which are listed as dropped.
func TestPodFieldsAreConverted(t *testing.T) {
	for spec, want := range map[string]string{
		"":                                 "null ",
		"nodeSelector: {disk: ssd}":        `{"nodeSelector":{"disk":"ssd"}} `,
		"priorityClassName: important":     `{"priorityClassName":"important"} `,
		"schedulerName: default-scheduler": "null ",
		"schedulerName: other, hostNetwork: true, runtimeClassName: x, topologySpreadConstraints: [{topologyKey: zone}]":                   "null hostNetwork,runtimeClassName,schedulerName,topologySpreadConstraints",
		"affinity: {podAntiAffinity: {}, podAffinity: {}}":                                                                                 "null affinity.podAffinity,affinity.podAntiAffinity",
		"tolerations: [{key: a, operator: Exists}, {key: b, operator: Lt, value: '5'}, {key: c, operator: Gt, value: '5'}]":                `{"tolerations":[{"key":"a","operator":"Exists"}]} tolerations`,
		"tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]":                  "null ",
		"tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]":                   `{"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":30}]} `,
		"containers: [{name: etcd, resources: {requests: {cpu: 200m, memory: 1Gi}, limits: {memory: 16Mi}}}]":                              `{"resources":{"requests":{"cpu":"200m","memory":"1Gi"}}} resources.limits.memory`,
		"containers: [{name: etcd, resources: {requests: {pods: 1, hugepages-2Mi: 4Mi}, limits: {hugepages-2Mi: 4Mi, example.com/x: 1}}}]": `{"resources":{"limits":{"example.com/x":"1","hugepages-2Mi":"4Mi"},"requests":{"hugepages-2Mi":"4Mi"}}} resources.requests.pods`,
	} {
		if !strings.Contains(spec, "containers") {
			spec = strings.TrimPrefix(spec+", containers: [{name: etcd}]", ", ")
		}
		declaration, dropped := describe(t, "metadata: {name: etcd, namespace: prod}\nspec: {serviceName: etcd, template: {spec: {"+spec+"}}}").Draft(Plan{Name: "new"}, running("3.6.16"))
		if got := asJSON(t, declaration["spec"].(map[string]any)["pod"]) + " " + strings.Join(dropped.PodFields, ","); got != want {
			t.Errorf("%s: got %s, want %s", spec, got, want)
		}
	}
}

// TestEveryOptionOfEtcdIsClassified checks that each option that a real etcd lists is carried over, listed as dropped,
// or known to be specific to a member. QUORATE_ETCD_DIR contains etcd-VERSION/etcd.
func TestEveryOptionOfEtcdIsClassified(t *testing.T) {
	programs, _ := filepath.Glob(filepath.Join(os.Getenv("QUORATE_ETCD_DIR"), "etcd-*", "etcd"))
	if os.Getenv("QUORATE_ETCD_DIR") == "" || len(programs) == 0 {
		t.Skip("QUORATE_ETCD_DIR is not set")
	}
	listed := regexp.MustCompile(`(?m)^ +--([a-z0-9-]+)`)
	for _, program := range programs {
		help, err := exec.CommandContext(t.Context(), program, "--help").CombinedOutput()
		options := listed.FindAllSubmatch(help, -1)
		if err != nil || len(options) < 100 {
			t.Fatalf("%s --help lists %d options: %v", program, len(options), err)
		}
		for _, option := range options {
			name := string(option[1])
			current, accepted := objects.OptionNamed(name)
			_, hasField := numericOptions[name]
			if !accepted && !hasField && !strings.HasPrefix(name, "auto-compaction-") && name == current &&
				!slices.Contains(notCarried, name) && !slices.Contains(ofMember, name) {
				t.Errorf("%s: --%s is not classified", program, name)
			}
		}
	}
}
