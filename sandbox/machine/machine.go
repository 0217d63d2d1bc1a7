//go:build linux

package machine

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// These are the first arguments (argv) of every init, which identify machines among the host's processes.
const (
	argv0   = "quorate-sandbox"
	Command = "machine" // the subcommand that calls Run
)

// Marker is the environment variable that marks sandbox processes outside the sandbox's machines. Its value is the
// sandbox's directory.
const Marker = "QUORATE_SANDBOX_DIR"

// Machine is a running machine.
type Machine struct {
	PID int // host PID of the machine's init
	fd  int // pidfd
}

// Start starts the machine. The machine's processes keep running after the caller has exited. A machine without its own
// network joins the network of host. A machine with its own network forwards connections from listener, which belongs
// to the caller's network and may be nil. Start sets the umask so that pod users can read files that this process and
// the machine create.
func Start(spec Spec, host *Machine, listener *net.TCPListener) (*Machine, error) {
	unix.Umask(0o022)
	if err := prepare(spec); err != nil {
		return nil, err
	}
	cmd, closeFiles, err := command(spec, listener)
	if err != nil {
		return nil, err
	}
	defer closeFiles()
	start := cmd.Start
	if spec.Network == nil {
		start = func() error { return host.InNetwork(cmd.Start) }
	}
	if err := start(); err != nil {
		return nil, fmt.Errorf("start machine %s: %w", spec.Name, err)
	}
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open a handle for machine %s: %w", spec.Name, err)
	}
	go func() { _ = cmd.Wait() }() // reaps init if it ends before the caller
	m := &Machine{PID: cmd.Process.Pid, fd: fd}
	m.awaitIsolated()
	return m, nil
}

// awaitIsolated waits until Find can reliably find the machine. While init re-executes itself, the kernel does not
// show its command line. The environment is the last to appear.
func (m *Machine) awaitIsolated() {
	for !isIsolated(m.PID) && !m.ended(time.Millisecond) {
	}
}

func isIsolated(pid int) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.Contains(strings.Split(string(environ), "\x00"), isolated+"=1")
}

func prepare(spec Spec) error {
	for _, dir := range []string{"log", "lib"} {
		if err := os.MkdirAll(filepath.Join(spec.Dir, dir), 0o755); err != nil {
			return fmt.Errorf("create the directory of machine %s: %w", spec.Name, err)
		}
	}
	if err := os.Remove(processesPath(spec.Dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the last process status of machine %s: %w", spec.Name, err)
	}
	data, err := spec.encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(specPath(spec.Dir), data, 0o600); err != nil {
		return fmt.Errorf("write the spec of machine %s: %w", spec.Name, err)
	}
	return nil
}

func command(spec Spec, listener *net.TCPListener) (*exec.Cmd, func(), error) {
	log, err := os.OpenFile(filepath.Join(spec.Dir, "log", "machine.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("open the log of machine %s: %w", spec.Name, err)
	}
	closeFiles := func() { log.Close() }
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{argv0, Command, spec.Dir}
	cmd.Env = []string{"PATH=" + searchPath, "HOME=/root"}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if spec.Network == nil {
		return cmd, closeFiles, nil
	}
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	if listener == nil {
		return cmd, closeFiles, nil
	}
	file, err := listener.File()
	if err != nil {
		log.Close()
		return nil, nil, fmt.Errorf("pass the listener to machine %s: %w", spec.Name, err)
	}
	cmd.ExtraFiles = []*os.File{file}
	return cmd, func() { log.Close(); file.Close() }, nil
}

const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Find returns the running machine with this directory, or nil if it is not running.
func Find(dir string) (*Machine, error) {
	all, err := find(func(found string) bool { return found == dir })
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// FindAll returns all running machines whose directory is below root.
func FindAll(root string) ([]*Machine, error) {
	return find(func(dir string) bool { return strings.HasPrefix(dir, root+"/") })
}

func find(match func(dir string) bool) ([]*Machine, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []*Machine
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !match(dirOf(pid)) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // the process has ended
		}
		if !match(dirOf(pid)) { // the PID has been reused
			unix.Close(fd)
			continue
		}
		found = append(found, &Machine{PID: pid, fd: fd})
	}
	return found, nil
}

// dirOf returns the machine's directory if pid is a machine's init. Otherwise, it returns "".
func dirOf(pid int) string {
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	argv := bytes.Split(bytes.TrimSuffix(cmdline, []byte{0}), []byte{0})
	if len(argv) != 3 || string(argv[0]) != argv0 || string(argv[1]) != Command {
		return ""
	}
	return string(argv[2])
}

// Runs reports whether the machine was started from exactly this spec.
func (m *Machine) Runs(spec Spec) bool {
	want, err := spec.encode()
	if err != nil {
		return false
	}
	have, err := os.ReadFile(specPath(spec.Dir))
	return err == nil && bytes.Equal(have, want)
}

// Alive reports whether the machine is still running.
func (m *Machine) Alive() bool {
	return !m.ended(0)
}

// Kill ends the machine immediately, as a power failure would. It returns when all processes of the machine have ended,
// or with an error after patience.
func (m *Machine) Kill(patience time.Duration) error {
	err := unix.PidfdSendSignal(m.fd, unix.SIGKILL, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill machine with process %d: %w", m.PID, err)
	}
	if !m.ended(patience) {
		return fmt.Errorf("kill machine with process %d: the process has not ended after %s", m.PID, patience)
	}
	return nil
}

// ended waits up to patience for init to end and reports whether it has ended. In a PID namespace, init is the last
// process to end.
func (m *Machine) ended(patience time.Duration) bool {
	deadline := time.Now().Add(patience)
	for {
		left := max(0, int(time.Until(deadline).Milliseconds()))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(m.fd), Events: unix.POLLIN}}, left)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n > 0
	}
}

// Path returns the path on the host for a path in the machine's file system.
func (m *Machine) Path(inside string) string {
	return filepath.Join("/proc", strconv.Itoa(m.PID), "root", inside)
}

// Release closes the handle to the machine. The machine keeps running.
func (m *Machine) Release() { unix.Close(m.fd) }
