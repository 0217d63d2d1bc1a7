// Package machine runs the machines of a sandbox. A machine's init is PID 1 in its own PID, mount, UTS and IPC
// namespaces. It starts the machine's other processes and keeps them running.
//
// Namespaces let a machine end as a whole: when init is killed, the kernel ends all processes of the machine, including
// containers. Because the mounts exist only in the machine's mount namespace, they disappear with the last process.
package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Spec is a complete description of a machine. Machines with equal specs are identical.
type Spec struct {
	Name    string // "control-plane", "node-1", …; also its host name
	Dir     string // path on the host; contains spec.json, processes.json, log/ and lib/
	Cgroup  string // path below the root of every hierarchy, "/quorate-sandbox/…"
	Network *Network
	Mounts  []Mount
	// Files maps absolute paths to content to write when the machine starts. The paths should be below /run, which is
	// private to the machine and kept in memory.
	Files map[string]string
	// Masks maps the paths of kernel files to the content that the machine sees instead. Most of them are settings in
	// /proc/sys that belong to the whole host and must not be changed.
	Masks     map[string]string
	Processes []Process
}

// Mount makes a host directory visible at a path in the machine.
type Mount struct {
	Source string // path on the host
	Target string // path in the machine; created if missing
}

// Network describes a machine's own network namespace. A machine without a Network shares the network namespace of the
// machine in which it is started.
type Network struct {
	Bridge    string   // interface that holds the addresses and the default route
	Addresses []string // in CIDR notation
	Forward   string   // address to which connections to the inherited listener are forwarded, or ""
}

// Process is a process that init keeps running. When it exits, init restarts it, with increasing delays.
type Process struct {
	Name string
	Path string
	Args []string
	Env  []string
	// After lists conditions for starting the process: "tcp://host:port" or "unix:///path" accepts connections,
	// "https://…" returns status 200, or, for "done:///NAME", the process NAME, which has Once set, has succeeded.
	After []string
	// Once specifies that the process is done when it exits with status 0, and is then not restarted.
	Once bool
}

// These are paths in every machine.
const (
	ownDir  = "/run/sandbox" // mount point of the machine's directory on the host
	LogDir  = "/var/log"
	selfExe = "/proc/1/exe" // the program that init runs
)

// Self returns the path, in a machine, of the program that started the machine.
func Self() string { return selfExe }

func specPath(dir string) string      { return filepath.Join(dir, "spec.json") }
func processesPath(dir string) string { return filepath.Join(dir, "processes.json") }

// encode returns the canonical encoding of a spec.
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

// ProcessStatus is the status of a process as seen by its machine's init.
type ProcessStatus struct {
	Name     string `json:"name"`
	PID      int    `json:"pid,omitempty"` // PID in the machine, or 0 if the process is not running
	Waiting  string `json:"waiting,omitempty"`
	Done     bool   `json:"done,omitempty"` // the process has Once set and has succeeded
	Restarts int    `json:"restarts"`
	LastExit string `json:"lastExit,omitempty"`
}

// Processes reads the process status that was last written by init of the machine in dir.
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
