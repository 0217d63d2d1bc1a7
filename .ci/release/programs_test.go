package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// TestProgramsAreTheSame checks that two clones of a commit in different directories produce the same program,
// regardless of build settings in the environment. It also checks that the program reports its version, and that the
// SBOM lists the modules that Go reports.
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

// TestSettingsOfGo checks that "go env -w" settings do not affect the programs, but still determine where modules are
// downloaded from.
func TestSettingsOfGo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("GOFLAGS=-tags=mine\nGOEXPERIMENT=arenas\nGOPROXY=https://proxy.example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOENV", file)
	for _, name := range []string{"GOFLAGS", "GOEXPERIMENT", "GOPROXY"} {
		t.Setenv(name, "")
	}
	asked := exec.CommandContext(t.Context(), "go", "env", "GOFLAGS", "GOEXPERIMENT", "GOPROXY", "GOOS")
	var err error
	if asked.Env, err = environment(t.Context(), platform{"windows", "arm64"}); err != nil {
		t.Fatal(err)
	}
	if said, err := asked.Output(); err != nil || string(said) != "\n\nhttps://proxy.example.com\nwindows\n" {
		t.Errorf("a build goes by %q: %v", said, err)
	}
}

// requireListed requires that list contains exactly the modules that "go version -m" prints for program.
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

// TestMakefileBuildsTheSame checks that "make build" uses the same flags as the release build in programs.go.
func TestMakefileBuildsTheSame(t *testing.T) {
	for _, want := range []string{
		"TAGS    := -tags disable_grpc_modules\n", `$(GO) build -trimpath $(TAGS) -ldflags "-s -w -X main.release=$(VERSION)"`,
	} {
		if !strings.Contains(readFile(t, root+"/Makefile"), want) {
			t.Errorf("the Makefile has no %q: has programs.go the same?", want)
		}
	}
}
