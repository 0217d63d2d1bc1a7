package adoption

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile/decide"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected output in testdata/adoption")

// section returns a file of an archive, or "".
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

// TestGolden inspects the StatefulSet in each file, as if etcd had responded, and compares the output with the file. A
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
			source := describe(t, section(archive, "statefulset.yaml"))
			in := Inspection{Source: source, Problems: source.Problems(plan)}
			if len(in.Problems) == 0 {
				version := source.Version
				if version == "" {
					version = "3.5.30"
				}
				in.Reported = running(version)
				in.Declaration = source.Draft(plan, in.Reported)
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
	if err := yaml.UnmarshalStrict([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	source, err := Describe(&set)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// checkValid requires that the API server would accept a declaration.
func checkValid(t *testing.T, declaration map[string]any) {
	t.Helper()
	filled := runtime.DeepCopyJSON(declaration)
	if err := schema.Default(filled); err != nil {
		t.Fatal(err)
	}
	if wrong := schema.Validate(filled, nil); len(wrong) > 0 {
		t.Errorf("the declaration is invalid: %v", wrong)
	}
}

// TestStatefulSetWithoutEtcdIsRejected checks that only StatefulSets that run etcd are described.
func TestStatefulSetWithoutEtcdIsRejected(t *testing.T) {
	var set appsv1.StatefulSet
	if err := yaml.Unmarshal([]byte("spec: {template: {spec: {containers: [{name: web, image: etcd.example.com/web}]}}}"), &set); err != nil {
		t.Fatal(err)
	}
	if s, err := Describe(&set); err == nil {
		t.Errorf("it is described as %+v", s)
	}
}

// TestHostileTextStaysInComments checks that text from Kubernetes and etcd cannot end a comment, so that it cannot
// change the declaration.
func TestHostileTextStaysInComments(t *testing.T) {
	for name, text := range printabletest.Hostile {
		source := Source{Namespace: "prod", Name: "etcd", Service: "etcd", Members: 1, ClientPort: 2379, Version: "3.6.16",
			Owner: text, Options: map[string]string{text: "x", "auto-compaction-retention": text, "peer-cert-allowed-cn": text}}
		in := Inspection{Source: source, Reported: running(text), Problems: append(source.Problems(Plan{}), text)}
		var out bytes.Buffer
		if err := in.Write(&out); err != nil {
			t.Fatal(err)
		}
		if unfit := printabletest.Unfit(out.String()); unfit != "" {
			t.Errorf("%s: %s:\n%.300q", name, unfit, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "#") {
				t.Errorf("%s: the line %.100q is not a comment", name, line)
			}
		}
	}
}
