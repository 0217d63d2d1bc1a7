package manifests

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"quorate.dev/quorate/clusters/policy"
)

var rewrite = flag.Bool("rewrite", false, "write what is, instead of comparing it with what was wanted")

// TestGolden reads each archive in testdata/gitsource as a source. The last file, "want", contains the expected result.
// The comment of the archive describes the case. Lines such as "path: DIR", "namespace: NAME", "allow: NAME NAME",
// "ignore: other kinds" and "allow-image-repository: PATTERN;PATTERN" are options.
func TestGolden(t *testing.T) {
	archives, err := filepath.Glob("../../testdata/gitsource/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { testArchive(t, file) })
	}
}

func testArchive(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	if last := len(archive.Files) - 1; last >= 0 && archive.Files[last].Name == "want" {
		want = archive.Files[last].Data
		archive.Files = archive.Files[:last]
	}
	dir := t.TempDir()
	if err := txtar.Write(archive, dir); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got := []byte(show(Read(t.Context(), root.FS(), optionsIn(t, string(archive.Comment)))))
	if *rewrite {
		archive.Files = append(archive.Files, txtar.File{Name: "want", Data: got})
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("want -, got +; read the difference, and run with -rewrite if it is meant:\n%s", diff)
	}
}

func optionsIn(t *testing.T, comment string) (o Options) {
	t.Helper()
	for line := range strings.Lines(comment) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "path":
			o.Path = value
		case "namespace":
			o.Namespace = value
		case "allow":
			o.AllowNamespaces = strings.Fields(value)
		case "ignore":
			o.IgnoreOtherKinds = true
		default:
			if allowed := o.Policy.Of(policy.Kind(key)); allowed != nil {
				var err error
				if *allowed, err = allowed.Setting(policy.Kind(key), value); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return o
}

// show formats the result of Read as text.
func show(desired Declarations, err error) string {
	var b strings.Builder
	if err != nil {
		fmt.Fprintln(&b, "error:", err)
	}
	for _, c := range desired.Clusters {
		applied, err := json.Marshal(c.Applied)
		if err != nil {
			applied = []byte(err.Error())
		}
		fmt.Fprintf(&b, "cluster %s/%s of %s:%d\n  %s\n", c.Cluster.Namespace, c.Cluster.Name, c.File, c.Line, applied)
		for _, w := range c.Warnings {
			fmt.Fprintln(&b, "  warning:", w)
		}
	}
	for _, p := range desired.Problems {
		fmt.Fprintf(&b, "problem %s\n  %s\n", strings.TrimSpace(p.Cluster), p)
	}
	return b.String()
}
