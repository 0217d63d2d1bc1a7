package build

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// source writes a module with one program. It returns a cache that builds from this module, and the component of the
// module.
func source(t *testing.T, main string) (*Cache, Component) {
	t.Helper()
	cache := &Cache{Dir: t.TempDir(), Sources: t.TempDir(), target: "go1.99 linux amd64"}
	dir := filepath.Join(cache.Sources, "hello")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"go.mod": "module hello\n\ngo 1.26.0\n", "main.go": main} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return cache, Component{Name: "hello", Version: "v1", Programs: []Program{{Name: "hello", Package: ".", Links: []string{"hi"}}}}
}

const hello = "package main\n\nfunc main() { println(\"hello\") }\n"

func TestBuildOnce(t *testing.T) {
	cache, component := source(t, hello)
	dir, err := cache.Build(t.Context(), component)
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.Stat(filepath.Join(dir, "hi")) // through the link
	if err != nil {
		t.Fatal(err)
	}
	again, err := cache.Build(t.Context(), component)
	if err != nil || again != dir {
		t.Fatalf("rebuilt in %s (%v), want %s", again, err, dir)
	}
	if second, err := os.Stat(filepath.Join(dir, "hello")); err != nil || !os.SameFile(first, second) {
		t.Errorf("the program was built again (%v)", err)
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	cache, component := source(t, "package main\n\nfunc main() { undefined() }\n")
	_, err := cache.Build(t.Context(), component)
	if err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("error %v does not contain the compiler's message", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cache.Build(ended, component); err == nil {
		t.Error("a cancelled build succeeded")
	}
	left, err := filepath.Glob(filepath.Join(cache.Dir, "*"))
	left = slices.DeleteFunc(left, func(path string) bool { return filepath.Base(path) == ".lock" })
	if err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v (%v)", left, err)
	}
	if has, err := cache.Has(component); has || err != nil {
		t.Errorf("the cache claims to have it: %t, %v", has, err)
	}
}

func TestKeyChangesWithWhatCouldChangeTheProgram(t *testing.T) {
	cache, component := source(t, hello)
	key := func() string {
		t.Helper()
		key, err := cache.key(component)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	seen := map[string]string{key(): "the first"}
	add := func(change string) {
		t.Helper()
		k := key()
		if other, known := seen[k]; known {
			t.Errorf("%s gives the same key as %s", change, other)
		}
		seen[k] = change
	}
	write := func(file, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(cache.Sources, "hello", file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	component.LDFlags = "-X main.version=v2"
	add("another flag")
	component.Tags = "small"
	add("another tag")
	component.Version = "v2"
	add("another version")
	cache.target = "go1.100 linux amd64"
	add("another toolchain")
	write("go.sum", "")
	add("a new file")
	write("main.go", hello+"\n")
	add("another source")

	before := key()
	component.Takes = time.Hour
	if key() != before {
		t.Error("output about the time changes the key")
	}
}

// TestVersionsAreThoseOfTheModules checks that the versions shown to users and used in cache keys are those that the
// go.mod files require and that are therefore built.
func TestVersionsAreThoseOfTheModules(t *testing.T) {
	requirement := map[string]string{
		"kubernetes": "k8s.io/kubernetes ", "containerd": "github.com/containerd/containerd/v2 ", "coredns": "github.com/coredns/coredns ",
	}
	for _, version := range EtcdVersions {
		requirement[Etcd(version).Name] = "go.etcd.io/etcd/server/v3 "
	}
	for _, component := range Components() {
		required, ok := requirement[component.Name]
		if !ok {
			continue
		}
		mod, err := os.ReadFile(filepath.Join(component.Name, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if want := required + component.Version; !strings.Contains(string(mod), want+"\n") && !strings.Contains(string(mod), want+" ") {
			t.Errorf("%s/go.mod does not require %s", component.Name, want)
		}
	}
}

func TestFindSources(t *testing.T) {
	dir, err := findSources() // starting in the test's working directory
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range Components() {
		if _, err := os.Stat(filepath.Join(dir, component.Name, "go.mod")); err != nil {
			t.Error(err)
		}
	}
}
