package clusters

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// holder identifies the process that holds a lease: the host, the process, and what tells that
// process from another one of the same number. Where the latter can be had, a lease left behind by
// a process that died on this very host is known to be free at once; elsewhere one waits until it
// runs out.
type holder struct {
	Host string
	PID  int
	// Process is the boot, the PID namespace and the start time of the process; empty where the
	// system does not tell.
	Process string
}

func thisHolder() holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return holder{Host: host, PID: os.Getpid(), Process: processOf(os.Getpid())}
}

// String is the holder identity in the lease.
func (h holder) String() string { return fmt.Sprintf("%s/%d/%s", h.Host, h.PID, h.Process) }

// Words names the holder for people.
func (h holder) Words() string { return fmt.Sprintf("process %d on %s", h.PID, h.Host) }

// parseHolder reads a holder identity; one that others wrote becomes the name of a host.
func parseHolder(identity string) holder {
	parts := strings.Split(identity, "/")
	if len(parts) != 3 {
		return holder{Host: identity}
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return holder{Host: identity}
	}
	return holder{Host: parts[0], PID: pid, Process: parts[2]}
}

// gone reports whether that holder is known to have ended: it ran in this boot and PID namespace,
// and no process of its number and start time is there.
func (h holder) gone() bool {
	here := processOf(os.Getpid())
	if h.Process == "" || here == "" || pidNamespaceOf(h.Process) != pidNamespaceOf(here) {
		return false
	}
	return processOf(h.PID) != h.Process
}

// pidNamespaceOf is the part of an identity that processes of one boot and PID namespace share.
func pidNamespaceOf(process string) string { return process[:strings.LastIndex(process, ".")+1] }

// processOf describes a process of this system as boot.namespace.start; empty if that cannot be
// known or it does not exist.
func processOf(pid int) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The command, in parentheses, may hold anything; the start time is the 20th field after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fmt.Sprintf("%.8s.%s.%s", boot, strings.Trim(namespace, "pid:[]"), fields[19])
}
