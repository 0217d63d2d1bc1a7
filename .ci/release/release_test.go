package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"quorate.dev/quorate/deploy"
)

const root = "../.."

func command(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	c := exec.Command(program, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, said)
	}
	return string(said)
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// newRelease is one of a directory, in another one; what it is made of is up to the test.
func newRelease(t *testing.T) *release {
	return &release{
		version: "v1.2.3", repository: "registry.example.com/quorate", root: root, out: t.TempDir(),
		commit: strings.Repeat("1", 40), time: time.Unix(1700000000, 0).UTC(),
	}
}

// Two clones of a commit, in two directories, give the same program, whatever the environment asks Go for; and it knows its version. What
// it is made of is what Go says of it.
func TestProgramsAreTheSame(t *testing.T) {
	t.Setenv("GOFLAGS", "-race")
	t.Setenv("GOAMD64", "v3")
	var programs, lists []string
	var out string
	for _, dir := range []string{"a", "another/place"} {
		clone := filepath.Join(t.TempDir(), dir)
		command(t, root, "git", "clone", "--quiet", ".", clone)
		command(t, clone, "git", "tag", "v1.2.3")
		r := newRelease(t)
		r.root = clone
		if err := r.learn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.program(t.Context(), platform{"linux", "amd64"}); err != nil {
			t.Fatal(err)
		}
		out = filepath.Join(r.out, "quorate-v1.2.3-linux-amd64")
		sum, err := sumOf(out)
		if err != nil {
			t.Fatal(err)
		}
		programs, lists = append(programs, sum), append(lists, readFile(t, out+".spdx.json"))
	}
	if programs[0] != programs[1] {
		t.Errorf("the programs differ: %q", programs)
	}
	if lists[0] != lists[1] {
		t.Errorf("the lists of what they are made of differ:\n%s\n%s", lists[0], lists[1])
	}
	requireListed(t, out, lists[1])
	info, err := buildinfo.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if info.Main.Version != "v1.2.3" {
		t.Errorf("Go says that it is %s", info.Main.Version)
	}
}

// requireListed wants a list to have the modules of a program, as Go's own command prints them, and no other.
func requireListed(t *testing.T, program, list string) {
	t.Helper()
	want := map[string]bool{}
	for _, line := range strings.Split(command(t, ".", "go", "version", "-m", program), "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 3 && (fields[0] == "dep" || fields[0] == "=>"):
			want[fields[1]+" "+fields[2]] = true
		case len(fields) == 2 && strings.HasPrefix(fields[1], "go1."):
			want["stdlib "+strings.TrimPrefix(fields[1], "go")] = true
		}
	}
	document, err := json.Read(strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	described, err := spdxlib.GetDescribedPackageIDs(document)
	if err != nil || len(described) != 1 {
		t.Fatalf("it describes %q: %v", described, err)
	}
	ids := map[string]bool{}
	for _, p := range document.Packages {
		if ids[string(p.PackageSPDXIdentifier)] {
			t.Errorf("%s is there twice", p.PackageSPDXIdentifier)
		}
		ids[string(p.PackageSPDXIdentifier)] = true
		if p.PackageSPDXIdentifier == described[0] {
			if sum, err := sumOf(program); err != nil || p.PackageChecksums[0].Value != sum {
				t.Errorf("it is about %v, not %s: %v", p.PackageChecksums, sum, err)
			}
			continue
		}
		name := p.PackageName + " " + p.PackageVersion
		if !want[name] {
			t.Errorf("%s is listed, and not in the program", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is in the program, and not listed", name)
	}
	if len(document.Packages) < 50 || len(document.Relationships) != len(document.Packages) {
		t.Errorf("%d packages and %d relationships", len(document.Packages), len(document.Relationships))
	}
}

// "make build" builds with the same flags.
func TestMakefileBuildsTheSame(t *testing.T) {
	for _, want := range []string{
		"TAGS    := -tags disable_grpc_modules\n", `$(GO) build -trimpath $(TAGS) -ldflags "-s -w -X main.release=$(VERSION)"`,
	} {
		if !strings.Contains(readFile(t, root+"/Makefile"), want) {
			t.Errorf("the Makefile has no %q: has programs.go the same?", want)
		}
	}
}

// What is in the way of a release is said, all at once, and nothing is made.
func TestRefuses(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n\n### Added\n\n- All.\n\n## [1.2.2] - 2026-01-01\n\n- Less.\n\n## [1.2.1]\n\n- No date.\n\n## [1.2.0] - 2026-01-01\n"
	for _, c := range []struct {
		version, tag, dirty string
		want                []string
	}{
		{"v1.2.3", "v1.2.3", "", nil},
		{"v1.2.3", "v1.2.3", "new.go", []string{"the tree is dirty", "?? new.go"}},
		{"v1.2.3", "v1.2.2", "", []string{"HEAD is not tagged v1.2.3: git tag"}},
		{"v1.2.4", "v1.2.4", "", []string{`CHANGELOG.md says nothing of v1.2.4: want a section "## [1.2.4] - 2023-11-14"`}},
		{"v1.2.1", "v1.2.1", "", []string{"CHANGELOG.md says nothing of v1.2.1"}},
		{"v1.2.0", "v1.2.0", "", []string{"CHANGELOG.md says nothing of v1.2.0"}},
		{"v1.2.4", "v1.2.3", "new.go", []string{"the tree is dirty", "HEAD is not tagged v1.2.4", "CHANGELOG.md says nothing of v1.2.4"}},
		{"v1.2", "v1.2", "", []string{`"v1.2" is no version`}},
		{"1.2.3", "1.2.3", "", []string{`"1.2.3" is no version`}},
		{"853659b-dirty", "v1.2.3", "", []string{"is no version such as v0.1.0"}},
		{"", "v1.2.3", "", []string{"is no version such as v0.1.0"}},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(changelog), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GIT_COMMITTER_DATE", "1700000000 +0000")
		command(t, dir, "git", "init", "--quiet")
		command(t, dir, "git", "add", ".")
		command(t, dir, "git", "commit", "--quiet", "--message", "all")
		command(t, dir, "git", "tag", c.tag)
		if c.dirty != "" {
			if err := os.WriteFile(filepath.Join(dir, c.dirty), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := &release{version: c.version, root: dir, out: filepath.Join(dir, "out")}
		if c.want == nil {
			if err := r.check(t.Context()); err != nil || r.notes != "### Added\n\n- All.\n" || r.time.Unix() != 1700000000 || len(r.commit) != 40 {
				t.Errorf("%+v: %v; it is %+v", c, err, r)
			}
			continue
		}
		err := r.make(t.Context(), io.Discard)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", c, err, want)
			}
		}
		if _, err := os.Stat(r.out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: something was made: %v", c, err)
		}
	}
}

// The image has a program for each architecture of Linux, and is the same if it is made again.
func TestImage(t *testing.T) {
	var digests, sums []string
	for range 2 {
		r := newRelease(t)
		programs := map[string]string{}
		for _, arch := range []string{"amd64", "arm64"} {
			programs[arch] = filepath.Join(t.TempDir(), arch)
			if err := os.WriteFile(programs[arch], []byte("program for "+arch), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		index, err := r.index(programs)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err == nil {
			err = r.archive(index)
		}
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(r.out, "quorate-v1.2.3-image.tar")
		sum, err := sumOf(file)
		if err != nil {
			t.Fatal(err)
		}
		digests, sums = append(digests, digest.String()), append(sums, sum)
		requireImage(t, file, digest)
		if left, err := os.ReadDir(r.out); err != nil || len(left) != 1 {
			t.Errorf("%v is left: %v", left, err)
		}
	}
	if digests[0] != digests[1] || sums[0] != sums[1] {
		t.Errorf("they differ: %q, %q", digests, sums)
	}
}

func requireImage(t *testing.T, file string, digest v1.Hash) {
	t.Helper()
	dir := t.TempDir()
	command(t, dir, "tar", "-xf", file)
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := outer.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		one, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := one.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != m.Platform.Architecture || config.OS != "linux" || config.Config.User != "65532:65532" || config.Created.Unix() != 1700000000 {
			t.Errorf("for %s, it is %+v", m.Platform, config)
		}
		if want := "program for " + m.Platform.Architecture; inImage(t, one, config.Config.Entrypoint[0]) != want {
			t.Errorf("for %s, the program is not %q", m.Platform, want)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("it is for %q", platforms)
	}
}

func inImage(t *testing.T, image v1.Image, name string) string {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers: %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if "/"+header.Name == name {
			text, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
}

// The archive of the chart has the version and the image of the release, can be rendered with no more than a source, and is the same if it
// is made again.
func TestChartOfARelease(t *testing.T) {
	const image = "registry.example.com/quorate:v1.2.3@sha256:1234"
	var archives [][]byte
	for range 2 {
		r := newRelease(t)
		if err := r.chart(image); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, []byte(readFile(t, filepath.Join(r.out, "quorate-1.2.3.tgz"))))
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("they differ")
	}
	c, err := loader.LoadArchive(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata.Version != "1.2.3" || c.Metadata.AppVersion != "v1.2.3" {
		t.Errorf("it is %+v", c.Metadata)
	}
	const source = "https://git.example.com/fleet.git"
	got, err := template(t, c, deploy.Namespace, object{"source": source})
	if err != nil {
		t.Fatal(err)
	}
	requireSame(t, got, kustomized(t, deploy.Options{Mode: deploy.CronJob, Image: image, Source: source}))
}

// What can be applied as it is runs the image of the release.
func TestInstall(t *testing.T) {
	const image = "registry.example.com/quorate:v1.2.3@sha256:1234"
	r := newRelease(t)
	if err := r.install(image); err != nil {
		t.Fatal(err)
	}
	loop := objects(t, readFile(t, filepath.Join(r.out, "install.yaml")))["Deployment quorate-system/quorate"]
	if text := fmt.Sprint(loop); !strings.Contains(text, "image:"+image) {
		t.Errorf("the loop is %s", text)
	}
}

// The checksums are those that sha256sum reads; what was changed, is missing or was added is told of.
func TestSums(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("b", "two")
	write("a", "one")
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	if got, want := readFile(t, filepath.Join(dir, sumsFile)), fmt.Sprintf("%x  a\n%x  b\n", sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two"))); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	write(sumsFile+".minisig", "signed")
	if err := checkSums(dir); err != nil {
		t.Error(err)
	}
	write("a", "1")
	write("c", "three")
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	err := checkSums(dir)
	for _, want := range []string{"no file is as listed: " + fmt.Sprintf("%x  a", sha256.Sum256([]byte("one"))), "  b", "does not list: ", "  c"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A directory with anything else in it is not deleted.
func TestClear(t *testing.T) {
	r := newRelease(t)
	keep := filepath.Join(r.out, "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.clear(); err == nil || !strings.Contains(err.Error(), "neither empty nor a whole release") {
		t.Error(err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
	if err := writeSums(r.out); err != nil {
		t.Fatal(err)
	}
	if err := r.clear(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(r.out); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}
