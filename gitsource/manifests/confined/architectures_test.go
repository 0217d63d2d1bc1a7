package confined

import (
	"go/build"
	"slices"
	"testing"
)

// TestEveryArchitectureHasAFilterOrNone checks that exactly one of two files is compiled on every Linux architecture:
// the seccomp filter, or the code that refuses to read sources.
func TestEveryArchitectureHasAFilterOrNone(t *testing.T) {
	filtered := []string{"amd64", "arm64", "loong64", "ppc64le", "riscv64"}
	for _, arch := range []string{"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x"} {
		linux := build.Default
		linux.GOOS, linux.GOARCH = "linux", arch
		p, err := linux.ImportDir(".", 0)
		if err != nil {
			t.Fatal(err)
		}
		has := func(file string) bool { return slices.Contains(p.GoFiles, file) }
		want := slices.Contains(filtered, arch)
		if has("seccomp_linux.go") != want || has("seccomp_linux_"+arch+".go") != want || has("filing_linux.go") != want || has("seccomp_linux_none.go") == want {
			t.Errorf("%s consists of %q", arch, p.GoFiles)
		}
	}
}
