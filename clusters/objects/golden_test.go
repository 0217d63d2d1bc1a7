package objects

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/reconcile/decide"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files again")

// TestGolden builds objects from the cluster and the record in each golden file and compares them with the objects in
// the file. If the file contains before.yaml, the existing pods were created from before.yaml, and new pods use
// cluster.yaml. If it contains kept.yaml, new pods still use kept.yaml.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("../../testdata/objects/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { checkGolden(t, file) })
	}
}

// restoreObjects returns the additional objects that exist while a cluster is being created from a backup or a lost
// cluster.
func restoreObjects(t *testing.T, in Input) []Object {
	t.Helper()
	if in.Record.Recovering() {
		job, err := RecoveryJob(in, "")
		if err != nil {
			t.Fatal(err)
		}
		return []Object{job}
	}
	if !in.Record.Restoring() {
		return nil
	}
	job, err := RestoreJob(in, "the UID of the claim")
	if err != nil {
		t.Fatal(err)
	}
	return []Object{SeedClaim(in, 0), job}
}

const goldenOutput = "objects.yaml"

func checkGolden(t *testing.T, file string) {
	archive, sections := openGolden(t, file)
	in := goldenInput(t, sections)
	list, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	got := render(t, append(list, restoreObjects(t, in)...))
	if bytes.Contains(got, []byte("PRIVATE KEY")) || bytes.Contains(got, encoded(in.Certificates.Client.Key)) {
		t.Fatal("a private key is in the output")
	}
	if *rewrite {
		archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == goldenOutput })
		archive.Files = append(archive.Files, txtar.File{Name: goldenOutput, Data: got})
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := sections[goldenOutput]; !bytes.Equal(got, want) {
		t.Errorf("objects differ from %s (run with -rewrite and read the difference):\n%s", file, firstDifference(string(want), string(got)))
	}
}

// openGolden reads a golden file. It also returns the file's sections by name.
func openGolden(t *testing.T, file string) (*txtar.Archive, map[string][]byte) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string][]byte{}
	for _, f := range archive.Files {
		sections[f.Name] = f.Data
	}
	return archive, sections
}

func goldenInput(t *testing.T, sections map[string][]byte) Input {
	c := cluster(t, string(sections["cluster.yaml"]))
	r, err := DecodeRecord(string(sections["record.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Cluster: c, Record: r, Voters: len(r.Members), Guests: len(r.Guests), Certificates: certificates(t, c), BackupImage: "registry.example.com/quorate:v1"}
	for _, m := range r.Members {
		if m.Mode == decide.Joining {
			in.Voters, in.Learners = in.Voters-1, in.Learners+1
		}
	}
	if err := yaml.UnmarshalStrict(sections["peers.yaml"], &in.Peers); err != nil {
		t.Fatal(err)
	}
	kept, before := sections["kept.yaml"], sections["before.yaml"]
	if len(kept)+len(before) == 0 {
		return in
	}
	list, err := Build(earlier(t, in, string(before)+string(kept)))
	if err != nil {
		t.Fatal(err)
	}
	configMap, statefulSet := list[0].Apply.(*applycorev1.ConfigMapApplyConfiguration), list[len(list)-1].Apply.(*applyappsv1.StatefulSetApplyConfiguration)
	in.Runs, in.Live = ReadMetadata(statefulSet.Spec.Template.Annotations).Template(), configMap.Data
	in.Pods = []Template{in.Runs}
	if len(kept) > 0 {
		in.Kept = statefulSet
	}
	return in
}

// earlier returns the input from before the spec changed and the joining member was added.
func earlier(t *testing.T, in Input, declared string) Input {
	in.Cluster, in.Peers = cluster(t, declared), nil
	in.Record.Members = slices.DeleteFunc(slices.Clone(in.Record.Members), func(m decide.RecordedMember) bool { return m.Mode == decide.Joining })
	return in
}

func encoded(key []byte) []byte {
	if len(key) == 0 {
		return []byte("\x00")
	}
	return []byte(base64.StdEncoding.EncodeToString(key))
}

// render returns the objects as YAML documents. Secrets are reduced to their keys.
func render(t *testing.T, list []Object) []byte {
	var out bytes.Buffer
	for _, o := range list {
		fields, err := convert[map[string]any](o.Apply)
		if err != nil {
			t.Fatal(err)
		}
		if o.Kind == "Secret" {
			fields["data"] = slices.Sorted(maps.Keys(fields["data"].(map[string]any)))
		}
		text, err := yaml.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes()
}

func firstDifference(want, got string) string {
	wanted, found := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(wanted), len(found)) {
		var w, g string
		if i < len(wanted) {
			w = wanted[i]
		}
		if i < len(found) {
			g = found[i]
		}
		if w != g {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, w, g)
		}
	}
	return ""
}
