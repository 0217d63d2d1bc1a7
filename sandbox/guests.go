//go:build linux

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// guests identifies the host processes that were started with Exec: they have the sandbox's mark in their environment
// or are in its network.
type guests struct {
	mark    string      // NAME=value in the environment
	network os.FileInfo // nil if the network no longer exists
}

// kill kills all guests, except the caller and its ancestors.
func (g guests) kill() error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	spared := ancestors()
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || slices.Contains(spared, pid) || !g.include(pid) {
			continue
		}
		if err := g.killOne(pid); err != nil {
			return err
		}
	}
	return nil
}

func (g guests) include(pid int) bool {
	if g.network != nil {
		network, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil && os.SameFile(network, g.network) {
			return true
		}
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false // the process has ended
	}
	return slices.ContainsFunc(bytes.Split(environment, []byte{0}), func(variable []byte) bool {
		return string(variable) == g.mark
	})
}

// killOne kills the process if it is still a guest. It holds a pidfd while it checks this, so that the PID cannot be
// reused.
func (g guests) killOne(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // the process has ended
	}
	defer unix.Close(fd)
	if !g.include(pid) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	const patience = 5 * time.Second
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for process %d to exit: %w", pid, err)
	}
	return nil
}

// ancestors returns the PIDs of the calling process and all its ancestors.
func ancestors() []int {
	var all []int
	for pid := os.Getpid(); pid > 0; pid = parent(pid) {
		all = append(all, pid)
	}
	return all
}

func parent(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The process name ends at the last parenthesis and may contain any character.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	number, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return number
}
