package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDemoWaitsForCurrentTexts checks that golden files of printed output contain each text that the demo waits for in
// a report or a custom resource. Otherwise rewording a text would break only the demo.
func TestDemoWaitsForCurrentTexts(t *testing.T) {
	waits := regexp.MustCompile(`shows '([^']*[a-z]{3}[^']*)' (?:quorate|kubectl get etcd)\b`).
		FindAllStringSubmatch(read(t, "testdata/demo/run.sh"), -1)
	if len(waits) < 5 {
		t.Fatalf("only %q found", waits)
	}
	var goldens strings.Builder
	for _, dir := range []string{"testdata/script", "reconcile/report/testdata", "reconcile/report/markdown/testdata"} {
		addTexts(t, &goldens, dir)
	}
	for _, wait := range waits {
		if !strings.Contains(goldens.String(), wait[1]) {
			t.Errorf("testdata/demo/run.sh waits for %q, which no golden file contains", wait[1])
		}
	}
}

// addTexts appends the text of all files in a directory.
func addTexts(t *testing.T, all *strings.Builder, dir string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
