// Package layout holds the fixed facts of every sandbox: its addresses and the
// paths inside its machines. Sandboxes may all have the same, because none
// sees another's network or files.
package layout

import "fmt"

// Addresses of the network, which has no way out.
const (
	Bridge           = "sandbox0"
	ControlPlane     = "10.88.0.1" // of the API server and of DNS
	APIServerPort    = 6443
	PodCIDR          = "10.88.0.0/16" // of all pods and machines
	ServiceCIDR      = "10.96.0.0/16"
	APIServerService = "10.96.0.1"
	ClusterDomain    = "cluster.local"
)

// MaxNodes is how many nodes a sandbox may have.
const MaxNodes = 3

// APIServer is where the API server is found inside the network.
var APIServer = fmt.Sprintf("%s:%d", ControlPlane, APIServerPort)

// Node is one node of a sandbox, numbered from 1.
type Node int

// Name of the node and of its machine.
func (n Node) Name() string { return fmt.Sprintf("node-%d", n) }

// Zone is the failure domain of the node: each is its own.
func (n Node) Zone() string { return fmt.Sprintf("zone-%d", n) }

// Address of the node's kubelet.
func (n Node) Address() string { return fmt.Sprintf("10.88.0.%d", 10+n) }

// PodCIDR has the addresses of the node's pods.
func (n Node) PodCIDR() string { return fmt.Sprintf("10.88.%d.0/24", n) }

// Paths inside machines.
const (
	Programs         = "/run/programs"
	Config           = "/run/config"
	ContainerdSocket = "/run/containerd/containerd.sock"
	Volumes          = "/var/lib/volumes"
	ImportedImages   = "/var/lib/images" // one mark per archive that containerd has
)

// ControlPlaneMachine is the name of the machine that holds the network and
// everything of which there is one.
const ControlPlaneMachine = "control-plane"
