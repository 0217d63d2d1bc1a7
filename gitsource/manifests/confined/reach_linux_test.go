package confined

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// reach attempts what code that has taken over a process would attempt. Each attempt makes the system call directly, as
// such code would.
type reach struct {
	// dir contains the files "file" and "other".
	dir string
	// victim is another process of the same user.
	victim int
	// socket is a file descriptor that is already open.
	socket int
}

func (r reach) attempts() map[string]func() error {
	at := func(name string) string { return filepath.Join(r.dir, name) }
	return map[string]func() error{
		"open":    func() error { return closing(unix.Open("/proc/self/stat", unix.O_RDONLY, 0)) },
		"create":  func() error { return closing(unix.Open(at("new"), unix.O_WRONLY|unix.O_CREAT, 0o600)) },
		"unlink":  func() error { return unix.Unlink(at("file")) },
		"mkdir":   func() error { return unix.Mkdir(at("dir"), 0o700) },
		"symlink": func() error { return unix.Symlink("target", at("symlink")) },
		"rename":  func() error { return unix.Rename(at("other"), at("renamed")) },
		"kill":    func() error { return unix.Kill(r.victim, 0) },
		"tgkill":  func() error { return unix.Tgkill(r.victim, r.victim, 0) },
		"ptrace": func() error {
			return errnoOf(unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(r.victim), 0, 0, 0, 0))
		},
		"pidfd":     func() error { return closing(unix.PidfdOpen(r.victim, 0)) },
		"socket":    func() error { return closing(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)) },
		"bind":      func() error { return unix.Bind(r.socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) },
		"connect":   func() error { return unix.Connect(r.socket, &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}}) },
		"fork":      fork,
		"mmap exec": func() error { return executable(func([]byte) error { return nil }, unix.PROT_READ|unix.PROT_EXEC) },
		"mprotect exec": func() error {
			return executable(func(page []byte) error { return unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC) }, unix.PROT_READ)
		},
		"setrlimit": func() error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: 100}) },
		"prctl":     func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) },
		"chdir":     func() error { return unix.Chdir("/") },
		"dup":       func() error { return closing(unix.Dup(1)) },
	}
}

func closing(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func errnoOf(_, _ uintptr, errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// fork creates a process that ends immediately.
func fork() error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

func executable(then func([]byte) error, protection int) error {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), protection, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(page) }()
	return then(page)
}

// impossible makes all attempts and returns the attempts whose result is not one of the wanted errors.
func (r reach) impossible(want ...error) (otherwise []string) {
	attempts := r.attempts()
	for _, name := range slices.Sorted(maps.Keys(attempts)) { // bind comes before connect, which also binds the socket
		if err := attempts[name](); !slices.Contains(want, err) {
			otherwise = append(otherwise, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return otherwise
}

// reachFrom makes the attempts from the child against its parent. Without the filter, most attempts would succeed, and
// execve would replace the process.
func reachFrom(dir string) string {
	r := reach{dir: dir, victim: os.Getppid(), socket: 1}
	otherwise := r.impossible(unix.EPERM)
	name, argument := []byte("/proc/self/exe\x00"), []byte("-test.run=^$\x00")
	if err := execve(name, argument); !errors.Is(err, unix.EPERM) {
		otherwise = append(otherwise, fmt.Sprintf("execve: %v", err))
	}
	if err := errnoOf(unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)); !errors.Is(err, unix.ENOSYS) {
		otherwise = append(otherwise, fmt.Sprintf("clone3: %v", err))
	}
	return strings.Join(otherwise, "; ")
}

// readFrom reads from a file descriptor, which may not be open.
func readFrom(descriptor string) string {
	fd, err := strconv.Atoi(descriptor)
	if err != nil {
		return err.Error()
	}
	_, err = unix.Read(fd, make([]byte, 1))
	return fmt.Sprint(err)
}

// sceneFor creates the targets of the attempts.
func sceneFor(t *testing.T) reach {
	t.Helper()
	r := reach{dir: t.TempDir(), victim: os.Getpid()}
	for _, name := range []string{"file", "other"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestChildAttemptsAreRefused checks that the filter refuses each attempt by a child started by Run, even if another
// layer would also refuse the attempt.
func TestChildAttemptsAreRefused(t *testing.T) {
	r := sceneFor(t)
	said, err := run(t.Context(), "reach in "+r.dir, roomy)
	if err != nil || strings.Join(said, "\n") != "possible: \ndone" {
		t.Errorf("error %v, %s", err, strings.Join(said, "\n"))
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, error %v", entries, err)
	}
}

// TestAttemptsFailOnlyAfterConfinement checks that all attempts succeed before a process is confined, and that all fail
// afterwards, even on a thread that already existed.
func TestAttemptsFailOnlyAfterConfinement(t *testing.T) {
	if dir := os.Getenv("QUORATE_TEST_REACH"); dir != "" {
		t.Log(reachTwice(dir))
		return
	}
	r := sceneFor(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAttemptsFailOnlyAfterConfinement$", "-test.v")
	child.Env = []string{"QUORATE_TEST_REACH=" + r.dir}
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), ": before: ; after: \n") {
		t.Errorf("%v\n%s", err, out)
	}
	if entries, err := os.ReadDir(r.dir); err != nil || fmt.Sprint(entries) != "[d dir/ - new - renamed L symlink]" {
		t.Errorf("%v, error %v", entries, err)
	}
}

// reachTwice makes the attempts on one thread, before and after another thread confines the process.
func reachTwice(dir string) string {
	victim := exec.Command("/proc/self/exe", "-test.run=^$")
	stdin, err := victim.StdinPipe()
	if err != nil {
		return err.Error()
	}
	defer stdin.Close()
	victim.Args = []string{testChild} // the victim waits for a task
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err.Error()
	}
	if err := victim.Start(); err != nil {
		return err.Error()
	}
	r := reach{dir: dir, victim: victim.Process.Pid, socket: socket}
	confined, done := make(chan error), make(chan string)
	go func() {
		runtime.LockOSThread()
		before := r.impossible(nil)
		confined <- nil
		if err := <-confined; err != nil {
			done <- err.Error()
			return
		}
		done <- fmt.Sprintf("before: %s; after: %s", strings.Join(before, ", "), strings.Join(r.impossible(unix.EPERM), ", "))
	}()
	<-confined
	confined <- confine(roomy)
	return <-done
}
