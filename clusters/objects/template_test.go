package objects

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// rollout returns a cluster of three sealed members on 3.6.16, before a declared rollout to 3.7.3 with a different
// quota. All pods still have the old template.
func rollout(t *testing.T) Input {
	t.Helper()
	in := input(t, "3.6.16")
	in.Cluster.Spec.Etcd.Options = map[string]v1alpha1.OptionValue{"corrupt-check-time": "4h", "max-wals": "7"}
	kept, err := statefulSet(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Live, in.Kept, in.Runs = filesOf(t, in), kept, DeclaredTemplate(in.Cluster)
	in.Pods = []Template{in.Runs}
	in.Cluster = in.Cluster.DeepCopy()
	in.Cluster.Spec.Version, in.Cluster.Spec.Etcd.Options, in.Cluster.Spec.Etcd.Quota = "3.7.3", nil, quantity("4Gi")
	return in
}

func keysOf(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }

// TestFilesFollowTheirTemplate checks that the files of a new template are added only when its rollout starts, and that
// the files of the old template are removed when its last pod is gone.
func TestFilesFollowTheirTemplate(t *testing.T) {
	in := rollout(t)
	before := in.Live
	if got := filesOf(t, in); !reflect.DeepEqual(got, before) {
		t.Errorf("other files before the rollout starts: %v", keysOf(got))
	}
	in.Kept = nil
	during := filesOf(t, in)
	for key, file := range before {
		if during[key] != file {
			t.Errorf("%s changes when the rollout starts", key)
		}
	}
	declared := DeclaredTemplate(in.Cluster)
	for n := range 3 {
		file := readFile(during[ConfigKey(PodName("a", n), declared)])
		if file["name"] != PodName("a", n) || file["max-wals"] != nil {
			t.Errorf("member %d has no file of its new pod: %v", n, file)
		}
	}
	if len(during) != 7 {
		t.Errorf("files: %v", keysOf(during))
	}
	in.Live, in.Runs, in.Pods = during, declared, []Template{declared}
	for key := range filesOf(t, in) {
		if key != RecordKey && !strings.HasSuffix(key, declared.String()+".yaml") {
			t.Errorf("%s still exists after the rollout", key)
		}
	}
}

// TestBuildIsStable checks that building again from the result of a build changes nothing, in every mode, with every
// template and with any live state.
func TestBuildIsStable(t *testing.T) {
	peers := map[string][]string{"a-0": {"https://a-0.a.default.svc:2380"}, "a-2": {"https://a-2.a.default.svc:2380"}}
	for _, mode := range []decide.Mode{decide.Founding, decide.Joining, decide.Sealed} {
		for _, live := range []string{"all", "one", "broken", "none"} {
			for _, known := range []bool{true, false} {
				for _, keep := range []bool{true, false} {
					in := rollout(t)
					in.Record.Members[2].Mode = mode
					in.Live = damaged(in.Live, live)
					if known {
						in.Peers = peers
					}
					if !keep {
						in.Kept = nil
					}
					in.Pods = append(in.Pods, DeclaredTemplate(in.Cluster), Template{"3.6.1", "gone"}, Template{"no", "key at all"}, Template{})
					once := filesOf(t, in)
					in.Live = once
					if twice := filesOf(t, in); !reflect.DeepEqual(once, twice) {
						t.Errorf("%s, live %s, known %v, kept %v: not stable", mode, live, known, keep)
					}
					if len(once) != 7 {
						t.Errorf("%s, live %s: files %v", mode, live, keysOf(once))
					}
				}
			}
		}
	}
}

// damaged returns a copy of the live data in which the files selected by what are missing or broken.
func damaged(data map[string]string, what string) map[string]string {
	data = maps.Clone(data)
	for key := range data {
		switch {
		case what == "none", what == "one" && !strings.HasPrefix(key, "a-1"):
			delete(data, key)
		case what == "broken" && !strings.HasPrefix(key, "a-2"):
			data[key] = map[bool]string{true: "name: other\n", false: "{"}[strings.HasPrefix(key, "a-0")]
		}
	}
	return data
}

// TestBrokenFileIsRebuilt checks that a file that was broken manually is rebuilt from the other members' files of the
// same template.
func TestBrokenFileIsRebuilt(t *testing.T) {
	in := rollout(t)
	intact := in.Live
	in.Live = damaged(in.Live, "broken")
	if got := filesOf(t, in); !reflect.DeepEqual(got, intact) {
		t.Errorf("not corrected: %v", got)
	}
}

// TestSealingChangesOnlyInitialKeys checks that sealing a member whose template is no longer declared changes only how
// the member starts.
func TestSealingChangesOnlyInitialKeys(t *testing.T) {
	for _, mode := range []decide.Mode{decide.Founding, decide.Joining} {
		in := rollout(t)
		in.Record.Members[1].Mode = mode
		in.Peers = map[string][]string{"a-1": {PeerURL(in.Cluster, 1)}}
		in.Live = filesOf(t, in)
		in.Record.Members[1].Mode = decide.Sealed
		sealed := filesOf(t, in)
		key := ConfigKey("a-1", in.Runs)
		before, after := readFile(in.Live[key]), readFile(sealed[key])
		if !strings.HasPrefix(sealed[key], sealedComment) || after["initial-cluster"] != sealedCluster || before["initial-cluster"] == sealedCluster {
			t.Errorf("%s: not sealed:\n%s", mode, sealed[key])
		}
		for _, file := range []map[string]any{before, after} {
			maps.DeleteFunc(file, func(key string, _ any) bool { return strings.HasPrefix(key, "initial-") })
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s: sealing changes more:\n%v\n%v", mode, before, after)
		}
	}
}

// TestLostTemplateFilesUseItsVersion checks that, if all files of the template for new pods are lost, the version of
// that template determines the supported keys.
func TestLostTemplateFilesUseItsVersion(t *testing.T) {
	in := rollout(t)
	in.Live, in.Runs.Version = nil, "3.5.3"
	in.Pods = []Template{in.Runs}
	in.Cluster.Spec.Etcd.Options = map[string]v1alpha1.OptionValue{"warning-unary-request-duration": "1s", "corrupt-check-time": "1s"}
	file := readFile(filesOf(t, in)[ConfigKey("a-0", in.Runs)])
	peer, _ := file["peer-transport-security"].(map[string]any)
	if file["experimental-corrupt-check-time"] == nil || file["warning-unary-request-duration"] != nil || peer == nil || peer["allowed-cn"] != nil {
		t.Errorf("no file for etcd 3.5.3: %v", file)
	}
}

// TestJoiningMemberNamesListedMembers checks that a joining member starts with the members that etcd currently lists,
// that its file keeps these members while the list is unknown, and that it does not start if etcd does not list it.
func TestJoiningMemberNamesListedMembers(t *testing.T) {
	const both = "a-0=http://x:2380,a-1=http://y:2380"
	in := input(t, "3.6.16")
	in.Record.Members[1].Mode = decide.Joining
	in.Peers = map[string][]string{"a-1": {"http://y:2380"}, "a-0": {"http://x:2380"}}
	if got := readFile(fileOf(t, in, 1))["initial-cluster"]; got != both {
		t.Errorf("listed: %v", got)
	}
	in.Live, in.Peers = filesOf(t, in), nil
	if got := readFile(fileOf(t, in, 1))["initial-cluster"]; got != both {
		t.Errorf("while the member list is unknown: %v", got)
	}
	in.Peers = map[string][]string{"a-10": {"http://y:2380"}, "ba-1": {"http://z:2380"}}
	if got := readFile(fileOf(t, in, 1))["initial-cluster"]; got != sealedCluster {
		t.Errorf("not listed: %v", got)
	}
	in.Live, in.Peers = nil, nil
	if got := readFile(fileOf(t, in, 1))["initial-cluster"]; got != sealedCluster {
		t.Errorf("with neither live files nor a member list: %v", got)
	}
}

// TestKeptStatefulSetChangesOnlyOwnerAndReplicas checks that only the owner and the number of pods of a kept
// StatefulSet change.
func TestKeptStatefulSetChangesOnlyOwnerAndReplicas(t *testing.T) {
	in := rollout(t)
	in.Record = record(4, decide.Sealed)
	in.Cluster.UID = "other"
	for lifecycle, want := range map[v1alpha1.Lifecycle]int32{v1alpha1.LifecycleRunning: 4, v1alpha1.LifecycleStopped: 0, v1alpha1.LifecycleDeleted: 0} {
		in.Cluster.Spec.Lifecycle = lifecycle
		got, err := statefulSet(in)
		if err != nil {
			t.Fatal(err)
		}
		if *got.Spec.Replicas != want {
			t.Errorf("%s: %d pods", lifecycle, *got.Spec.Replicas)
		}
		paths, err := Differences(in.Kept, got)
		for _, path := range paths {
			if path != "spec.replicas" && !strings.HasPrefix(path, "metadata.ownerReferences") {
				t.Errorf("%s: %s changes", lifecycle, path)
			}
		}
		if err != nil || len(paths) == 0 {
			t.Errorf("%s: %v, %v", lifecycle, paths, err)
		}
	}
	in.Kept = applyappsv1.StatefulSet("a", "default") // another manager has taken over all fields
	if got, err := statefulSet(in); err != nil || got.Spec.Replicas == nil {
		t.Errorf("%v, %v", got, err)
	}
}
