package clusters

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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
	// Part tells the parts of one process apart that are each about a Kubernetes cluster; empty where there are none.
	Part string
}

// thisHolder is this process, or the part of it that has this name.
func thisHolder(part string) holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h := holder{Host: host, PID: os.Getpid()}
	h.Process, _ = proc.process(h.PID)
	if part != "" { // whoever names a context may have any characters in it
		sum := sha256.Sum256([]byte(part))
		h.Part = hex.EncodeToString(sum[:4])
	}
	return h
}

// String is the holder identity in the lease.
func (h holder) String() string {
	identity := fmt.Sprintf("%s/%d/%s", h.Host, h.PID, h.Process)
	if h.Part != "" {
		identity += "/" + h.Part
	}
	return identity
}

// Words names the holder for people.
func (h holder) Words() string { return fmt.Sprintf("process %d on %s", h.PID, h.Host) }

// parseHolder reads a holder identity; one that others wrote becomes the name of a host.
func parseHolder(identity string) holder {
	parts := strings.Split(identity, "/")
	if len(parts) != 3 && len(parts) != 4 {
		return holder{Host: identity}
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return holder{Host: identity}
	}
	return holder{Host: parts[0], PID: pid, Process: parts[2], Part: strings.Join(parts[3:], "")}
}

// gone reports whether that holder is known to have ended: it ran on this host, in this boot and PID namespace, and no
// process of its number and start time is there.
func (h holder) gone() bool {
	here := thisHolder("")
	if h.Process == "" || h.Host != here.Host || pidNamespaceOf(h.Process) != pidNamespaceOf(here.Process) {
		return false
	}
	there, err := proc.process(h.PID)
	return errors.Is(err, os.ErrProcessDone) || err == nil && there != h.Process
}

// pidNamespaceOf is the part of an identity that processes of one boot and PID namespace share.
func pidNamespaceOf(process string) string { return process[:strings.LastIndex(process, ".")+1] }

// procfs is where the system tells about its processes.
type procfs string

const proc procfs = "/proc"

// process describes a process of this system as boot.namespace.start. The error is os.ErrProcessDone if there is none
// of that number, or only what is left of one that has ended; any other means that it cannot be known, as where a
// process may not look at those of other users.
func (p procfs) process(pid int) (string, error) {
	boot, err := p.read("sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	namespace, err := os.Readlink(p.path("self/ns/pid"))
	if err != nil {
		return "", err
	}
	stat, err := p.read(strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", cmp.Or(ended(pid), err)
	}
	// The command, in parentheses, may hold anything; the start time is the 20th field after it.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", fmt.Errorf("%s does not tell when the process started", p.path(strconv.Itoa(pid)+"/stat"))
	}
	if fields[0] == "Z" {
		return "", os.ErrProcessDone
	}
	return fmt.Sprintf("%.8s.%s.%s", boot, strings.Trim(namespace, "pid:[]"), fields[19]), nil
}

func (p procfs) path(name string) string { return filepath.Join(string(p), name) }

func (p procfs) read(name string) (string, error) {
	text, err := os.ReadFile(p.path(name))
	return string(text), err
}

// ended returns os.ErrProcessDone if there is no process of that number.
func ended(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Signal(syscall.Signal(0)) // which sends nothing
}
