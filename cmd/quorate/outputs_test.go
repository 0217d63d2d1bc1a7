package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/report"
)

// TestReplaceFile checks that a file is replaced atomically, keeping its permissions and following links, and that a
// failed attempt does not leave any files behind.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("before, which is longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := replaceFile(link, []byte("after")); err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(reader); err != nil || string(content) != "before, which is longer" {
		t.Errorf("a concurrent reader gets %q, %v", content, err)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "after" {
		t.Errorf("it holds %q, %v", content, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its rights are %v, %v", info.Mode(), err)
	}
	if target, err := os.Readlink(link); err != nil || target != "file" {
		t.Errorf("the link points to %q, %v", target, err)
	}
	if err := replaceFile(os.DevNull, []byte("x")); err != nil {
		t.Errorf("a device: %v", err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device is %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v", entries, err)
	}
}

// TestFailedOutputDoesNotPreventOthers checks that an output that cannot be written does not prevent other outputs.
func TestFailedOutputDoesNotPreventOthers(t *testing.T) {
	dir := t.TempDir()
	var out, stderr strings.Builder
	o := outputs{formats: []string{"text", "json", "state"}}
	for _, text := range []string{"json=" + filepath.Join(dir, "gone", "x"), "json=" + filepath.Join(dir, "there"), "state=" + stderrFile, "text=-"} {
		if err := o.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	err := o.write(streams{&out, &stderr}, func(w io.Writer, format string) error {
		_, err := io.WriteString(w, format)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "gone") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "there"))
	if err != nil || string(content) != "json" || out.String() != "text" || stderr.String() != "state" {
		t.Errorf("the file has %q, %v; stdout %q; stderr %q", content, err, out.String(), stderr.String())
	}
}

// TestGitHubSummaryAppendsWithinLimit checks that the summary is appended, and never exceeds GitHub's limit.
func TestGitHubSummaryAppendsWithinLimit(t *testing.T) {
	var many report.Report
	for i := range 20_000 {
		many.Clusters = append(many.Clusters, report.Cluster{Namespace: "ns", Name: strings.Repeat("a", i%50+1), Error: strings.Repeat("it fails ", 20)})
	}
	for _, before := range []int{0, 10, 1 << 19, mostOfSummary - 5000, mostOfSummary - 100, mostOfSummary, mostOfSummary + 7} {
		file := filepath.Join(t.TempDir(), "summary.md")
		if err := os.WriteFile(file, []byte(strings.Repeat("x", before)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (outcome{command: "plan", report: many}).summarize(file); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(content), strings.Repeat("x", before)) || len(content) > max(before, mostOfSummary) {
			t.Errorf("after %d bytes, the size is %d, %v", before, len(content), err)
		}
		if told := len(content) > before; told != (before < mostOfSummary-4097) {
			t.Errorf("after %d bytes, it mentions the report: %t", before, told)
		}
	}
	if err := (outcome{}).summarize(""); err != nil {
		t.Error(err)
	}
}
