// Package layout defines constants that are the same in all sandboxes: addresses, and paths in machines. They can be
// the same because each sandbox has its own network and files.
package layout

import "fmt"

// These are addresses in a sandbox's network, which is not connected to the outside.
const (
	Bridge           = "sandbox0"
	ControlPlane     = "10.88.0.1" // address of the API server and of DNS
	APIServerPort    = 6443
	PodCIDR          = "10.88.0.0/16" // contains all pods and machines
	ServiceCIDR      = "10.96.0.0/16"
	APIServerService = "10.96.0.1"
	ClusterDomain    = "cluster.local"
)

// MaxNodes is the maximum number of nodes in a sandbox.
const MaxNodes = 3

// APIServer is the address of the API server in the sandbox's network.
var APIServer = fmt.Sprintf("%s:%d", ControlPlane, APIServerPort)

// Node is the number of a node in a sandbox, starting at 1.
type Node int

// Name returns the name of the node and of its machine.
func (n Node) Name() string { return fmt.Sprintf("node-%d", n) }

// Zone returns the name of the node's failure domain, which is different for each node.
func (n Node) Zone() string { return fmt.Sprintf("zone-%d", n) }

// Address returns the address of the node's kubelet.
func (n Node) Address() string { return fmt.Sprintf("10.88.0.%d", 10+n) }

// PodCIDR returns the address range of the node's pods.
func (n Node) PodCIDR() string { return fmt.Sprintf("10.88.%d.0/24", n) }

// These are paths in machines.
const (
	Programs         = "/run/programs"
	Config           = "/run/config"
	ContainerdSocket = "/run/containerd/containerd.sock"
	Volumes          = "/var/lib/volumes"
	ImportedImages   = "/var/lib/images" // contains a mark for each imported archive
)

// ControlPlaneMachine is the name of the machine that owns the network and runs all components that exist only once.
const ControlPlaneMachine = "control-plane"
