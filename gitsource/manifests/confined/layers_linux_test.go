//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package confined

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"quorate.dev/quorate/gitsource/manifests/confined/confinedtest"
)

const testLayer = "QUORATE_TEST_LAYER"

// TestHelperLayer is run by other tests in a separate process, because its effects cannot be reverted.
func TestHelperLayer(t *testing.T) {
	layer, ok := layers[os.Getenv(testLayer)]
	if !ok {
		t.Skip("it is a part of other tests")
	}
	fmt.Fprintf(os.Stdout, "{{%s}}", layer(t))
}

var layers = map[string]func(t *testing.T) string{
	"no filter": func(t *testing.T) string {
		if err := install(append([]bpf.Instruction{bpf.LoadAbsolute{Off: systemCall, Size: 4}}, append(when(unix.SYS_SECCOMP, fail(unix.ENOSYS)), allow)...)); err != nil {
			return err.Error()
		}
		said, err := run(t.Context(), "ask", roomy)
		return fmt.Sprintf("%q, %v", said, err)
	},
	"Landlock": func(*testing.T) string {
		if err := withoutFiles(); err != nil {
			return err.Error()
		}
		_, err := os.Open("/proc/self/stat")
		return fmt.Sprint(errors.Is(err, unix.EACCES), err)
	},
	"hidden": func(t *testing.T) string {
		Hide()
		said, err := run(t.Context(), "ask", roomy)
		peek := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestHelperLayer$")
		peek.Env = []string{testLayer + "=peek"}
		seen, peekErr := peek.CombinedOutput()
		return fmt.Sprintf("%q, %v, %s, %v", said, err, inner(seen), peekErr)
	},
	"not hidden": func(t *testing.T) string {
		peek := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestHelperLayer$")
		peek.Env = []string{testLayer + "=peek"}
		seen, err := peek.CombinedOutput()
		return fmt.Sprintf("%s, %v", inner(seen), err)
	},
	"peek": func(*testing.T) string {
		_, err := os.Open(fmt.Sprintf("/proc/%d/mem", os.Getppid()))
		return fmt.Sprint("mem: ", errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM))
	},
}

// inner extracts the output of a layer from the output of the test program.
func inner(out []byte) string {
	_, rest, _ := strings.Cut(string(out), "{{")
	text, _, ok := strings.Cut(rest, "}}")
	if !ok {
		return string(out)
	}
	return text
}

// inLayer runs a layer in a separate process, as the user uid unless uid is 0.
func inLayer(t *testing.T, layer string, uid uint32) string {
	t.Helper()
	program := os.Args[0]
	if uid != 0 {
		program = confinedtest.ForEverybody(t)
	}
	child := exec.CommandContext(t.Context(), program, "-test.run=^TestHelperLayer$")
	child.Env, child.Dir = []string{testLayer + "=" + layer}, "/"
	if uid != 0 {
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := child.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return inner(out)
}

// TestRunRefusesWithoutSeccompFilter checks that nothing runs if the kernel does not accept the filter, and that the
// error names the fix.
func TestRunRefusesWithoutSeccompFilter(t *testing.T) {
	said := inLayer(t, "no filter", 0)
	if !strings.HasPrefix(said, "[], ") || !strings.Contains(said, "CONFIG_SECCOMP_FILTER, and a container runtime whose own profile allows prctl(2) and seccomp(2)") {
		t.Errorf("%s", said)
	}
}

// TestLandlockBlocksOpeningFiles checks that Landlock by itself prevents opening files, if the kernel supports
// Landlock.
func TestLandlockBlocksOpeningFiles(t *testing.T) {
	if version, err := landlock.LandlockGetABIVersion(); err != nil || version < 1 {
		t.Skipf("the kernel has no Landlock: %v", err)
	}
	if said := inLayer(t, "Landlock", 0); !strings.HasPrefix(said, "true ") {
		t.Errorf("%s", said)
	}
}

// TestHiddenProcessMemoryIsUnreadable checks that a hidden process can still start its children as an unprivileged
// user, and that other processes of the same user cannot read its memory.
func TestHiddenProcessMemoryIsUnreadable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("running as another user requires root")
	}
	if said, want := inLayer(t, "hidden", 65532), `["hello world" "done"], <nil>, mem: true, <nil>`; said != want {
		t.Errorf("%s, want %s", said, want)
	}
	if said, want := inLayer(t, "not hidden", 65532), `mem: false, <nil>`; said != want {
		t.Errorf("the test would not notice: %s, want %s", said, want)
	}
}

// TestInheritedFilesAreClosed checks that files that this process inherited, rather than opened itself, are not passed
// to the child.
func TestInheritedFilesAreClosed(t *testing.T) {
	file, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETFD, 0); err != nil { // not close-on-exec, like an inherited file
		t.Fatal(err)
	}
	said, err := run(t.Context(), fmt.Sprintf("read in %d", file.Fd()), roomy)
	if want := "read: bad file descriptor"; err != nil || said[0] != want {
		t.Errorf("error %v, output %q, want %s", err, said, want)
	}
}
