package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDemoWaitsForCurrentTexts checks that each text that the demo waits for in a report or a custom resource appears
// in golden files of printed output. Otherwise, rewording a text would break the demo without failing a test.
func TestDemoWaitsForCurrentTexts(t *testing.T) {
	waits := regexp.MustCompile(`shows '([^']*[a-z]{3}[^']*)' (?:quorate|kubectl get etcd)\b`).
		FindAllStringSubmatch(read(t, "testdata/demo/run.sh"), -1)
	if len(waits) < 5 {
		t.Fatalf("only %q found", waits)
	}
	var goldens strings.Builder
	for _, dir := range []string{"testdata/script", "reconcile/report/testdata", "reconcile/report/markdown/testdata"} {
		files, err := os.ReadDir(filepath.Join("../..", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !file.IsDir() {
				goldens.WriteString(read(t, filepath.Join(dir, file.Name())))
			}
		}
	}
	for _, wait := range waits {
		if !strings.Contains(goldens.String(), wait[1]) {
			t.Errorf("testdata/demo/run.sh waits for %q, which no golden file contains", wait[1])
		}
	}
}
