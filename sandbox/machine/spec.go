// Package machine runs the machines of a sandbox. A machine is one process,
// the init, that is the first of its own PID, mount, UTS and IPC namespaces,
// and starts the machine's other processes and keeps them running.
//
// Namespaces make the machine mortal as a whole: when its init is killed, the
// kernel ends every process of the machine, containers included, and with the
// last of them its mounts vanish, because none of them was ever made outside.
package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Spec describes a machine completely: two equal specs are the same machine.
type Spec struct {
	Name    string // "control-plane", "node-1", …; also its host name
	Dir     string // of the host: spec.json, processes.json, log/ and lib/
	Cgroup  string // path below the root of every hierarchy, "/quorate-sandbox/…"
	Network *Network
	Mounts  []Mount
	// Files are written when the machine starts: content by absolute path.
	// They belong below /run, which is the machine's own and in memory.
	Files map[string]string
	// Masks hide single files of the kernel from the machine, mostly
	// settings below /proc/sys that are the whole host's and not to be changed.
	Masks     map[string]string
	Processes []Process
}

// Mount makes a directory of the host visible at another path in the machine.
type Mount struct {
	Source string // on the host
	Target string // in the machine; made if it is missing
}

// Network is what a machine that has a network namespace of its own sets up in
// it. A machine without one shares the namespace of the machine it is started in.
type Network struct {
	Bridge    string   // interface that holds the addresses and the default route
	Addresses []string // in CIDR notation
	Forward   string   // address that connections to the inherited listener are forwarded to; "" for none
}

// Process is kept running: when it exits it is started again, ever more slowly.
type Process struct {
	Name string
	Path string
	Args []string
	Env  []string
	// After names what must answer before the process is started:
	// "tcp://host:port", "unix:///path", "https://…" with status 200, or
	// "done:///NAME" for a process with Once that has ended well.
	After []string
	// Once says that the process is over when it has ended with status 0.
	Once bool
}

// Paths inside every machine.
const (
	ownDir  = "/run/sandbox" // the machine's directory on the host
	LogDir  = "/var/log"
	selfExe = "/proc/1/exe" // the program of the init
)

// Self is the path, inside a machine, of the program that started it.
func Self() string { return selfExe }

func specPath(dir string) string      { return filepath.Join(dir, "spec.json") }
func processesPath(dir string) string { return filepath.Join(dir, "processes.json") }

// encode is the canonical form of a spec.
func (s Spec) encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the spec of machine %s: %w", s.Name, err)
	}
	return append(data, '\n'), nil
}

func readSpec(dir string) (Spec, error) {
	var spec Spec
	data, err := os.ReadFile(specPath(dir))
	if err != nil {
		return Spec{}, fmt.Errorf("read the machine's spec: %w", err)
	}
	if err := json.Unmarshal(data, &spec); err != nil {
		return Spec{}, fmt.Errorf("decode %s: %w", specPath(dir), err)
	}
	return spec, nil
}

// ProcessStatus is what a machine's init knows about one process.
type ProcessStatus struct {
	Name     string `json:"name"`
	PID      int    `json:"pid,omitempty"` // inside the machine; 0 when it does not run
	Waiting  string `json:"waiting,omitempty"`
	Done     bool   `json:"done,omitempty"` // ended well, and was to run once
	Restarts int    `json:"restarts"`
	LastExit string `json:"lastExit,omitempty"`
}

// Processes reads what the init of the machine in dir wrote last.
func Processes(dir string) ([]ProcessStatus, error) {
	data, err := os.ReadFile(processesPath(dir))
	if err != nil {
		return nil, fmt.Errorf("read the machine's processes: %w", err)
	}
	var status []ProcessStatus
	if err := json.Unmarshal(data, &status); err != nil {
		return nil, fmt.Errorf("decode %s: %w", processesPath(dir), err)
	}
	return status, nil
}
