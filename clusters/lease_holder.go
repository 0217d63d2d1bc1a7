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

// holder identifies the process that holds a lease: the host, the PID, and data that distinguishes the process from
// others with the same PID. If that data is available, a lease left by a process that died on this host is known to be
// free immediately; otherwise it has to expire.
type holder struct {
	Host string
	PID  int
	// Process is the boot, PID namespace and start time of the process, or "" if the system does not report them.
	Process string
	// Part distinguishes the parts of a process that each work on a Kubernetes cluster; "" if it does not have parts.
	Part string
}

// thisHolder returns this process, or its part with this name.
func thisHolder(part string) holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h := holder{Host: host, PID: os.Getpid()}
	h.Process, _ = proc.process(h.PID)
	if part != "" { // a context's name may contain any characters
		sum := sha256.Sum256([]byte(part))
		h.Part = hex.EncodeToString(sum[:4])
	}
	return h
}

// String returns the holder identity in the lease.
func (h holder) String() string {
	identity := fmt.Sprintf("%s/%d/%s", h.Host, h.PID, h.Process)
	if h.Part != "" {
		identity += "/" + h.Part
	}
	return identity
}

// Words returns the holder's name for messages.
func (h holder) Words() string { return fmt.Sprintf("process %d on %s", h.PID, h.Host) }

// parseHolder parses a holder identity. An identity that Quorate did not write becomes the name of a host.
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

// gone reports whether that holder is known to have ended: it ran on this host, in this boot and PID namespace, and a
// process with its PID and start time no longer exists.
func (h holder) gone() bool {
	here := thisHolder("")
	if h.Process == "" || h.Host != here.Host || pidNamespaceOf(h.Process) != pidNamespaceOf(here.Process) {
		return false
	}
	there, err := proc.process(h.PID)
	return errors.Is(err, os.ErrProcessDone) || err == nil && there != h.Process
}

// pidNamespaceOf returns the part of an identity that processes of the same boot and PID namespace share.
func pidNamespaceOf(process string) string { return process[:strings.LastIndex(process, ".")+1] }

// procfs is the directory in which the system describes its processes.
type procfs string

const proc procfs = "/proc"

// process describes a process of this system as boot.namespace.start. The error is os.ErrProcessDone if the PID does
// not exist or is a zombie. Any other error means that this is not known, for example because other users' processes
// are hidden.
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
	// The command, in parentheses, may contain anything; the start time is the 20th field after it.
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

// ended returns os.ErrProcessDone if a process with that PID does not exist.
func ended(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Signal(syscall.Signal(0)) // signal 0 is not delivered
}
