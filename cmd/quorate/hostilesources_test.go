package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hostileSources returns sources that each declare too much of one kind of content, as compactly as possible. The exit
// code is 1 if nothing can be read, and 3 if the source has a problem.
func hostileSources(t *testing.T) map[string]string {
	const most = 2 << 20
	return map[string]string{
		"sequences of scalars": filesIn(t, "a.yaml", "["+strings.Repeat("a,", most/2-1)),
		"hidden scalars":       filesIn(t, "a.yaml", "x: y \"\nz: ["+strings.Repeat("a,", most/2-10)),
		"mappings":             filesIn(t, "a.yaml", strings.Repeat("{},", most/3)),
		"anchors":              filesIn(t, "a.yaml", strings.Repeat("- &a a\n", most/7)),
		"documents":            filesIn(t, "a.yaml", strings.Repeat("---\n", most/4)),
		"small documents":      filesIn(t, "a.yaml", strings.Repeat("a: {b: [c]}\n---\n", most/16)),
		"alias bomb":           filesIn(t, "a.yaml", bomb),
		"text by aliases":      filesIn(t, "a.yaml", "a: &a "+strings.Repeat("x", most/4)+"\nb: [*a, *a]\n"),
		"cycle":                filesIn(t, "a.yaml", "a: &a {b: *a}\n"),
		"escapes":              filesIn(t, "a.yaml", `a: "`+strings.Repeat(`\x1b`, most/4-2)+`"`),
		"comments":             filesIn(t, "a.yaml", strings.Repeat("#\n", most/2-9)+"a: b"),
		"directives":           filesIn(t, "a.yaml", strings.Repeat("%TAG ! tag:x,2000:\n", most/20)),
		"open brackets":        filesIn(t, "a.yaml", strings.Repeat("[", most)),
		"doubling":             filesIn(t, "a.yaml", hostileCluster, "kustomization.yaml", "resources: [a.yaml]\nreplacements:\n"+strings.Repeat(replacement, 40)),
		"large kustomization":  filesIn(t, "kustomization.yaml", "resources: ["+strings.Repeat("a,", most/2-10)+"]\n"),
		"kustomized scalars":   filesIn(t, "kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", "x: y \"\nz: ["+strings.Repeat("a,", most/2-10)+"]\n"),
		"references":           serveReferences(t, 32<<20-100),
		"fewer references":     serveReferences(t, int(budgetWithin(256<<20).limits.Transfer.RefsBytes)-100),
		"large objects":        serveObjects(t, 31<<20),
		"deltas":               serveObjects(t, int(budgetWithin(256<<20).limits.Transfer.Pack.ObjectBytes)-1000),
	}
}

const hostileCluster = "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata:\n  name: a\nspec:\n  version: 3.6.5\n  pod: {annotations: {x: a-a}}\n"

const replacement = "- source: {kind: EtcdCluster, fieldPath: spec.pod.annotations.x}\n  targets:\n" +
	"  - {select: {kind: EtcdCluster}, fieldPaths: [spec.pod.annotations.x], options: {delimiter: '-', index: 0}}\n"

const bomb = `a: &a [x,x,x,x,x,x,x,x,x,x]
b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]
c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]
e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]
`

// TestHostileSourcesFitInContainerMemory checks that the container resources in deploy/base are sufficient for every
// hostile source, either alone or eight times in parallel.
func TestHostileSourcesFitInContainerMemory(t *testing.T) {
	g := newMemoryGroup(t, 256<<20)
	all := []string{"validate"}
	for name, location := range hostileSources(t) {
		all = append(all, "--source", location)
		t.Run(name, func(t *testing.T) {
			for _, times := range []int{1, 8} {
				args := []string{"validate"}
				for range times {
					args = append(args, "--source", location)
				}
				code, out := g.quorate(t, args...)
				if code != exitError && code != exitInvalid || strings.Contains(out, "exited early") || strings.Contains(out, "goroutine ") {
					t.Errorf("%d at the same time: exit code %d: %.1000s", times, code, out)
				}
			}
		})
	}
	if code, out := g.quorate(t, all...); code != exitError {
		t.Errorf("all at the same time: exit code %d: %.1000s", code, out)
	}
}

// filesIn creates a directory with the given files. The arguments are alternating names and contents.
func filesIn(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// serveReferences serves a list of references of the given size that does not contain a readable branch.
func serveReferences(t *testing.T, size int) string {
	t.Helper()
	var list bytes.Buffer
	line := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		fmt.Fprintf(&list, "%04x%s", len(text)+4, text)
	}
	line("# service=git-upload-pack\n")
	list.WriteString("0000")
	line("%040d refs/a\x00ofs-delta shallow side-band-64k\n", 1)
	for i := 0; list.Len() < size; i++ {
		line("%040d refs/%06x\n", 1, i)
	}
	list.WriteString("0000")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(list.Bytes()) }))
	t.Cleanup(server.Close)
	return server.URL + "/x.git"
}

// serveObjects serves a commit with files of the given size that are stored as deltas of each other. The commit does
// not contain a valid declaration.
func serveObjects(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	git := func(stdin io.Reader, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Stdin, cmd.Env = dir, stdin, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	git(nil, "init", "--quiet", "--bare", "--initial-branch=main")
	git(nil, "config", "core.bigFileThreshold", "1g")
	var stream bytes.Buffer
	stream.WriteString("commit refs/heads/main\ncommitter a <a@example.com> 1800000000 +0000\ndata 1\nx\nM 100644 inline a.yaml\ndata 5\na: b\n\n")
	random := rand.New(rand.NewPCG(1, 2))
	block := make([]byte, 1024)
	for i := range block {
		block[i] = byte(random.Uint32())
	}
	content := bytes.Repeat(block, size/len(block))
	for i := range 8 {
		content[i*100_000] ^= 1
		fmt.Fprintf(&stream, "M 100644 inline %d.bin\ndata %d\n%s\n", i, len(content), content)
	}
	git(&stream, "fast-import", "--quiet")
	git(nil, "repack", "-adfq", "--window=10", "--depth=50")
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(git(nil, "--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"},
	})
	t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(dir)
}
