package objects

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

func build(t *testing.T, in Input) []Object {
	t.Helper()
	list, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func input(t *testing.T, version string) Input {
	t.Helper()
	c := threeMembers(t, version)
	return Input{Cluster: c, Record: record(3, decide.Sealed), Voters: 3, Certificates: certificates(t, c)}
}

func TestIdentitiesMatchBuiltObjects(t *testing.T) {
	for _, mode := range []v1alpha1.TLSMode{v1alpha1.TLSManaged, v1alpha1.TLSDisabled} {
		in := input(t, "3.6.16")
		if in.BackupImage = "quorate:v1"; mode == v1alpha1.TLSDisabled {
			in.Cluster.Spec.Backup = &v1alpha1.BackupSpec{Schedule: "@daily", TimeZone: "Etc/UTC", To: v1alpha1.BackupDestination{Volume: &v1alpha1.VolumeDestination{ClaimName: "b"}}}
		}
		in.Cluster.Spec.TLS.Mode = mode
		var built []Identity
		for _, o := range build(t, in) {
			built = append(built, o.Identity)
		}
		if want := Identities(in.Cluster); !slices.Equal(built, want) {
			t.Errorf("%s: built %v, announced %v", mode, built, want)
		}
	}
}

// TestEveryObjectIsMarked checks that every object has Quorate's labels, its owner reference, and its Kubernetes kind.
func TestEveryObjectIsMarked(t *testing.T) {
	in := input(t, "3.6.16")
	for _, o := range build(t, in) {
		fields, err := convert[struct {
			Kind     string
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
				OwnerReferences []struct {
					UID        string
					Controller bool
				}
			}
		}](o.Apply)
		if err != nil {
			t.Fatal(err)
		}
		m := fields.Metadata
		if fields.Kind != o.Kind || m.Name != o.Name || m.Namespace != "default" || !reflect.DeepEqual(m.Labels, Labels("a")) {
			t.Errorf("%s: %+v", o, fields)
		}
		if len(m.OwnerReferences) != 1 || m.OwnerReferences[0].UID != string(in.Cluster.UID) || !m.OwnerReferences[0].Controller {
			t.Errorf("%s: owners %+v", o, m.OwnerReferences)
		}
	}
}

func TestBuildRejectsInvalidInput(t *testing.T) {
	for name, change := range map[string]func(*Input){
		"no UID":                 func(in *Input) { in.Cluster.UID = "" },
		"no token or no member":  func(in *Input) { in.Record.Token = "" },
		"has no token or no mem": func(in *Input) { in.Record.Members = nil },
		"unknown mode":           func(in *Input) { in.Record.Members[1].Mode = "" },
		"is missing":             func(in *Input) { in.Certificates.PeerClient.Key = nil },
		"spec.etcd.options.max-wals: must be a whole number": func(in *Input) {
			in.Cluster.Spec.Etcd.Options = map[string]v1alpha1.OptionValue{"max-wals": "many"}
		},
		"read version \"latest\"": func(in *Input) { in.Cluster.Spec.Version = "latest" },
	} {
		in := input(t, "3.6.16")
		change(&in)
		if _, err := Build(in); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckOptions(t *testing.T) {
	c := threeMembers(t, "3.5.9")
	c.Spec.Etcd.HeartbeatInterval = "soon"
	c.Spec.Etcd.Options = map[string]v1alpha1.OptionValue{
		"data-dir":                       "x",
		"enable-distributed-tracing":     "yes",
		"log-level":                      "loud",
		"max-wals":                       "-1",
		"snapshot-catchup-entries":       "1000",
		"warning-apply-duration":         "5",
		"warning-unary-request-duration": "1s",
	}
	want := []string{
		`spec.etcd.heartbeatInterval: time: invalid duration "soon"`,
		`spec.etcd.options.data-dir is not supported; supported options are `,
		`spec.etcd.options.enable-distributed-tracing: must be true or false, not "yes"`,
		`spec.etcd.options.log-level: must be one of debug, info, warn, error, panic, fatal, not "loud"`,
		`spec.etcd.options.max-wals: must be a whole number from 0 to 4294967295, not "-1"`,
		`spec.etcd.options.snapshot-catchup-entries: the configuration file of etcd 3.5.9 does not support this option; use etcd 3.5.14 or newer, or remove the option`,
		`spec.etcd.options.warning-apply-duration: must be a duration such as 100ms, 5s or 1h, not "5"`,
		`spec.etcd.options.warning-unary-request-duration: the configuration file of etcd 3.5.9 does not support this option; use etcd 3.6.0 or newer, or remove the option`,
	}
	got := CheckOptions(c.Spec)
	if len(got) != len(want) {
		t.Fatalf("%d problems: %q", len(got), got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

// TestMemberFiles checks that the files of all initial members have the same initial-cluster, which includes each of
// them, and that a sealed member's file does not name the member.
func TestMemberFiles(t *testing.T) {
	in := input(t, "3.7.3")
	for _, mode := range []decide.Mode{decide.Founding, decide.Sealed} {
		in.Record = record(3, mode)
		for n := range 3 {
			own := initialClusterLine(fileOf(t, in, n))
			if names := strings.Contains(own, PodName("a", n)+"="); names != (mode == decide.Founding) {
				t.Errorf("%s %d: %s", mode, n, own)
			}
			if first := initialClusterLine(fileOf(t, in, 0)); own != first {
				t.Errorf("%s: members 0 and %d belong to different clusters: %s, %s", mode, n, first, own)
			}
		}
	}
}

func initialClusterLine(file string) string {
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "initial-cluster:") {
			return line
		}
	}
	return ""
}

// TestLateInitialMemberNamesAllMembers checks that the file of an initial member that starts late also names the
// members that have already been sealed.
func TestLateInitialMemberNamesAllMembers(t *testing.T) {
	in := input(t, "3.6.16")
	in.Record = record(3, decide.Founding)
	before := fileOf(t, in, 2)
	in.Record.Members[0].Mode, in.Record.Members[1].Mode = decide.Sealed, decide.Sealed
	if after := fileOf(t, in, 2); before != after {
		t.Errorf("%s\n%s", before, after)
	}
}

func TestDisruptionBudgetKeepsQuorum(t *testing.T) {
	for _, test := range []struct{ recorded, voters, declared, want int }{
		{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 2}, {3, 0, 3, 2}, {3, 3, 5, 3}, {5, 5, 3, 3}, {4, 5, 3, 3}, {5, 4, 3, 3}, {9, 9, 9, 5},
	} {
		in := input(t, "3.6.16")
		n := int32(test.declared)
		in.Cluster.Spec.Replicas, in.Voters, in.Record = &n, test.voters, record(test.recorded, decide.Sealed)
		if got := disruptionBudget(in).Spec.MinAvailable.IntValue(); got != test.want {
			t.Errorf("%+v: minAvailable %d", test, got)
		}
	}
}

// TestDisruptionBudgetIgnoresLearners checks that the voters keep quorum after evictions, whichever pods are ready: a
// ready learner cannot vote. Before 3.5.11, the probe reports every learner as ready. Before 3.5.18, it may do so.
func TestDisruptionBudgetIgnoresLearners(t *testing.T) {
	for _, test := range []struct{ voters, learners, declared, live, want int }{
		{1, 1, 2, 0, 2}, {1, 1, 3, 0, 2}, {2, 1, 3, 0, 3}, {3, 1, 5, 0, 3}, {4, 1, 5, 0, 4}, {3, 1, 3, 0, 3}, {3, 0, 3, 0, 2},
		{3, 0, 3, 3, 3}, {3, 0, 3, 1, 2},
	} {
		in := input(t, "3.5.3")
		n := int32(test.declared)
		in.Cluster.Spec.Replicas, in.Voters, in.Learners, in.MinAvailable = &n, test.voters, test.learners, test.live
		in.Record = record(test.voters+test.learners, decide.Sealed)
		got := disruptionBudget(in).Spec.MinAvailable.IntValue()
		if got != test.want {
			t.Errorf("%+v: minAvailable %d", test, got)
		}
		// The maximum number of voters has been evicted, and the learner is ready.
		if left := test.voters - (test.voters + test.learners - got); left < decide.Quorum(test.voters) {
			t.Errorf("%+v: %d voters are left", test, left)
		}
	}
}

// TestRecordIsWrittenWithoutCertificates checks that the record can be written without certificates, so that a lost CA
// does not prevent sealing.
func TestRecordIsWrittenWithoutCertificates(t *testing.T) {
	in := input(t, "3.6.16")
	in.Certificates = Certificates{}
	if _, err := Build(in); err == nil {
		t.Error("Secrets are built without certificates")
	}
	in.WithoutSecrets = true
	list, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if o.Kind == "Secret" {
			t.Errorf("%s exists", o)
		}
	}
}

// TestSpecHash checks that the hash depends only on fields that affect how a pod runs.
func TestSpecHash(t *testing.T) {
	before := threeMembers(t, "3.6.16")
	hash := SpecHash(before)
	n, class := int32(5), "fast"
	for name, change := range map[string]func(*v1alpha1.EtcdClusterSpec){
		"version":  func(s *v1alpha1.EtcdClusterSpec) { s.Version = "3.7.3" },
		"replicas": func(s *v1alpha1.EtcdClusterSpec) { s.Replicas = &n },
		"storage":  func(s *v1alpha1.EtcdClusterSpec) { s.Storage.StorageClassName = &class },
		"suspend":  func(s *v1alpha1.EtcdClusterSpec) { s.Suspend = true },
		"adopt":    func(s *v1alpha1.EtcdClusterSpec) { s.Adopt = &v1alpha1.AdoptionSpec{ClusterID: "c1"} },
		"digest of a different version": func(s *v1alpha1.EtcdClusterSpec) {
			s.Image.Digests = map[string]v1alpha1.ImageDigest{"3.7.3": "sha256:1"}
		},
		"service names": func(s *v1alpha1.EtcdClusterSpec) { s.TLS.ServiceNames = []v1alpha1.ServiceName{"old"} },
		"same quantity": func(s *v1alpha1.EtcdClusterSpec) { s.Etcd.Quota = quantity("2048Mi") },
	} {
		after := before.DeepCopy()
		if change(&after.Spec); SpecHash(after) != hash {
			t.Errorf("%s changes the hash", name)
		}
	}
	for name, change := range map[string]func(*v1alpha1.EtcdClusterSpec){
		"quota":      func(s *v1alpha1.EtcdClusterSpec) { s.Etcd.Quota = quantity("3Gi") },
		"option":     func(s *v1alpha1.EtcdClusterSpec) { s.Etcd.Options = map[string]v1alpha1.OptionValue{"max-wals": "7"} },
		"repository": func(s *v1alpha1.EtcdClusterSpec) { s.Image.Repository = "example.com/etcd" },
		"digest": func(s *v1alpha1.EtcdClusterSpec) {
			s.Image.Digests = map[string]v1alpha1.ImageDigest{"3.6.16": "sha256:1"}
		},
		"CA to adopt": func(s *v1alpha1.EtcdClusterSpec) { s.Adopt = &v1alpha1.AdoptionSpec{CASecretName: "old-ca"} },
		"TLS":         func(s *v1alpha1.EtcdClusterSpec) { s.TLS.Mode = v1alpha1.TLSDisabled },
		"label":       func(s *v1alpha1.EtcdClusterSpec) { s.Pod.Labels = map[string]v1alpha1.PodLabelValue{"a": "b"} },
	} {
		after := before.DeepCopy()
		if change(&after.Spec); SpecHash(after) == hash {
			t.Errorf("%s does not change the hash", name)
		}
	}
}

// TestEverySpecFieldIsHashedOrDoesNotConcernPods checks that each field of the spec is either part of the hash, so that
// changing it restarts members, or is listed here because running pods do not depend on it.
func TestEverySpecFieldIsHashedOrDoesNotConcernPods(t *testing.T) {
	hashed := []string{"Image", "TLS", "Etcd", "Pod"}
	others := []string{"Replicas", "Version", "Storage", "NetworkPolicy", "Backup", "Restore", "Adopt", "Recovery", "ReplaceAfter",
		"Suspend", "Lifecycle"}
	for field := range reflect.TypeFor[v1alpha1.EtcdClusterSpec]().Fields() {
		if !slices.Contains(hashed, field.Name) && !slices.Contains(others, field.Name) {
			t.Errorf("spec field %s: if pods depend on it, add it to spelledHash, with omitempty", field.Name)
		}
	}
}

// TestDigest checks that a digest applies only to its own version.
func TestDigest(t *testing.T) {
	spec := threeMembers(t, "3.6.16").Spec
	for _, test := range []struct {
		digests map[string]v1alpha1.ImageDigest
		want    string
	}{
		{nil, "gcr.io/etcd-development/etcd:v3.6.16"},
		{map[string]v1alpha1.ImageDigest{"3.6.15": "sha256:1"}, "gcr.io/etcd-development/etcd:v3.6.16"},
		{map[string]v1alpha1.ImageDigest{"3.6.15": "sha256:1", "3.6.16": "sha256:2"}, "gcr.io/etcd-development/etcd:v3.6.16@sha256:2"},
	} {
		spec.Image.Digests = test.digests
		if got := image(spec); got != test.want {
			t.Errorf("%v: %s", test.digests, got)
		}
	}
}

func TestDifferences(t *testing.T) {
	want, err := statefulSet(input(t, "3.6.16"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*applyappsv1.StatefulSetApplyConfiguration)
		paths  []string
	}{
		"no change": {func(*applyappsv1.StatefulSetApplyConfiguration) {}, nil},
		"different order": {func(s *applyappsv1.StatefulSetApplyConfiguration) {
			slices.Reverse(s.Spec.Template.Spec.Volumes)
			slices.Reverse(s.Spec.Template.Spec.Containers[0].Ports)
			slices.Reverse(s.Spec.Template.Spec.TopologySpreadConstraints)
		}, nil},
		"different image": {func(s *applyappsv1.StatefulSetApplyConfiguration) {
			s.Spec.Template.Spec.Containers[0].WithImage("x")
		}, []string{"spec.template.spec.containers[etcd].image"}},
		"fields added and removed": {func(s *applyappsv1.StatefulSetApplyConfiguration) {
			s.WithLabels(map[string]string{"x": "y"})
			s.Spec.Replicas = nil
			s.Spec.Template.Spec.Volumes = s.Spec.Template.Spec.Volumes[1:]
		}, []string{"metadata.labels.x", "spec.replicas", "spec.template.spec.volumes[members]"}},
	} {
		live, err := convert[*applyappsv1.StatefulSetApplyConfiguration](want)
		if err != nil {
			t.Fatal(err)
		}
		test.change(live)
		if paths, err := Differences(want, live); err != nil || !slices.Equal(paths, test.paths) {
			t.Errorf("%s: %v, %v", name, paths, err)
		}
	}
}

// TestInputHidesPrivateKeys checks that printing an input does not reveal private keys.
func TestInputHidesPrivateKeys(t *testing.T) {
	in := input(t, "3.6.16")
	encoded, err := json.Marshal(in.Certificates)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.Split(string(in.Certificates.Client.Key), "\n")[1]
	for _, text := range []string{string(encoded), fmt.Sprintf("%+v", in), fmt.Sprintf("%#v", in.Certificates), fmt.Sprint(in)} {
		if strings.Contains(text, key) || strings.Contains(text, fmt.Sprint([]byte(key))[1:60]) {
			t.Errorf("the key is in %s", text)
		}
	}
}

// TestValues checks that a field that Quorate will own is shown with its current value, whichever manager owns it,
// unless it already has the wanted value.
func TestValues(t *testing.T) {
	type object = map[string]any
	list := func(elements ...any) []any { return elements }
	for name, test := range map[string]struct {
		want, ours, live object
		is               string
	}{
		"field owned by Quorate":                 {object{"a": 2}, object{"a": 1}, object{"a": 1, "b": 1}, "[{a 1 2}]"},
		"field of another manager":               {object{"a": 2}, object{}, object{"a": 1}, "[{a 1 2}]"},
		"field of another manager, wanted value": {object{"a": 2}, object{}, object{"a": 2}, "[]"},
		"field does not exist":                   {object{"a": 2}, object{}, object{}, "[{a <nil> 2}]"},
		"field is no longer wanted":              {object{}, object{"a": 1}, object{"a": 1}, "[{a 1 <nil>}]"},
		"part of another manager's object":       {object{"a": object{"b": 2, "c": 3}}, object{}, object{"a": object{"b": 1, "c": 3, "d": 4}}, "[{a.b 1 2}]"},
		"element of another manager's list":      {object{"env": list(object{"name": "x", "value": "2"})}, object{}, object{"env": list(object{"name": "y"}, object{"name": "x", "value": "1"})}, "[{env[x].value 1 2}]"},
		"elements added and removed":             {object{"env": list(object{"name": "x", "value": "2"})}, object{"env": list(object{"name": "y"})}, object{"env": list(object{"name": "y"})}, "[{env[x] <nil> map[name:x value:2]} {env[y] map[name:y] <nil>}]"},
	} {
		values, err := Values(test.want, test.ours, test.live)
		if got := fmt.Sprint(values); err != nil || got != test.is {
			t.Errorf("%s: %s, %v; want %s", name, got, err, test.is)
		}
	}
}
