package confined

import (
	"fmt"
	"net"
	"os"
	"runtime/debug"

	"github.com/landlock-lsm/go-landlock/landlock"
	access "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// openFiles is the maximum number of open files and connections, because each takes kernel memory.
const openFiles = 1024

// confineTo restricts this process to the access that r allows.
func confineTo(r Reach, l Limits) error {
	if !filters {
		return errNoFilter
	}
	debug.SetMaxStack(maxStack)
	debug.SetTraceback("none")
	debug.SetMemoryLimit(l.Memory)
	endAtSignal()
	used, err := dataBytes()
	if err != nil {
		return err
	}
	net.DefaultResolver.PreferGo = true // the resolver of a C library would load code
	if err := closeInherited(); err != nil {
		return err
	}
	Hide()
	if err := withFiles(r); err != nil {
		return fmt.Errorf("restrict the process with Landlock: %w", err)
	}
	if err := bound(l, used, openFiles); err != nil {
		return err
	}
	if err := install(reaching(os.Getpid(), r.Network)); err != nil {
		return fmt.Errorf("%w; sources are read only under a seccomp filter: use a kernel with CONFIG_SECCOMP_FILTER, "+
			"and a container runtime whose own profile allows prctl(2) and seccomp(2)", err)
	}
	return nil
}

// withFiles drops the rights to use files that r does not list, and to accept connections, if the kernel supports
// Landlock.
func withFiles(r Reach) error {
	all := landlock.V11
	rights := landlock.Config{HandledAccessFS: all.HandledAccessFS, HandledAccessNet: all.HandledAccessNet}
	if r.Network {
		rights.HandledAccessNet = access.AccessNetBindTCP
	}
	const reading, writing = access.AccessFSReadFile | access.AccessFSReadDir,
		access.AccessFSWriteFile | access.AccessFSTruncate | access.AccessFSMakeReg | access.AccessFSRemoveFile |
			access.AccessFSRemoveDir
	var rules []landlock.Rule
	for _, path := range r.Read {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			rules = append(rules, landlock.PathAccess(reading, path).IgnoreIfMissing())
		} else if err == nil {
			rules = append(rules, landlock.PathAccess(access.AccessFSReadFile, path).IgnoreIfMissing())
		}
	}
	for _, path := range r.Write {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			rules = append(rules, landlock.PathAccess(reading|writing, path).IgnoreIfMissing())
		}
	}
	return rights.BestEffort().Restrict(rules...)
}
