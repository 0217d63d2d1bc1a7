// Package controlplane describes the machine that owns a sandbox's network and runs the API server, controllers,
// scheduler, service proxy and DNS.
package controlplane

import (
	"path"

	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
	"quorate.dev/quorate/sandbox/pki"
)

// Config holds the settings that differ between sandboxes.
type Config struct {
	Dir, Cgroup               string
	Kubernetes, Etcd, CoreDNS string // host directories of the programs
	Certificates              pki.Store
}

const (
	certificates = layout.Config + "/pki"
	objectsFile  = layout.Config + "/objects.yaml"
	kubernetes   = layout.Programs + "/kubernetes"
	etcdURL      = "http://127.0.0.1:23790" // leaves etcd's default ports to users of the network
	etcdPeerURL  = "http://127.0.0.1:23800"
)

// Spec returns the spec of the control plane's machine.
func Spec(c Config) (machine.Spec, error) {
	files, err := files(c.Certificates)
	if err != nil {
		return machine.Spec{}, err
	}
	return machine.Spec{
		Name:   layout.ControlPlaneMachine,
		Dir:    c.Dir,
		Cgroup: c.Cgroup,
		Network: &machine.Network{
			Bridge:    layout.Bridge,
			Addresses: addresses(),
			Forward:   layout.APIServer,
		},
		Mounts: []machine.Mount{
			{Source: c.Kubernetes, Target: kubernetes},
			{Source: c.Etcd, Target: layout.Programs + "/etcd"},
			{Source: c.CoreDNS, Target: layout.Programs + "/coredns"},
		},
		Files: files,
		Processes: []machine.Process{
			etcd(), apiServer(), controllerManager(), scheduler(), proxy(), objects(), dns(),
		},
	}, nil
}

// addresses returns the addresses of the control plane and of as many nodes as a sandbox can have.
func addresses() []string {
	all := []string{layout.ControlPlane + "/24"}
	for n := layout.Node(1); n <= layout.MaxNodes; n++ {
		all = append(all, n.Address()+"/32")
	}
	return all
}

func etcd() machine.Process {
	return machine.Process{
		Name: "etcd",
		Path: layout.Programs + "/etcd/etcd",
		Args: []string{
			"--name=sandbox",
			"--data-dir=/var/lib/etcd",
			"--listen-client-urls=" + etcdURL,
			"--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=" + etcdPeerURL,
			"--initial-advertise-peer-urls=" + etcdPeerURL,
			"--initial-cluster=sandbox=" + etcdPeerURL,
			// The data does not have to survive a crash of the host.
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
	}
}

// afterAPI is the start condition of processes that need the API server. afterRoles is the start condition of processes
// that would exit if they lacked permissions when they start.
var (
	afterAPI   = []string{"tcp://" + layout.APIServer}
	afterRoles = []string{"https://" + layout.APIServer + "/readyz"}
)

func controllerManager() machine.Process {
	return machine.Process{
		Name:  "kube-controller-manager",
		Path:  kubernetes + "/kube-controller-manager",
		After: afterRoles,
		Args: []string{
			"--kubeconfig=" + kubeconfig("controller-manager"),
			"--authentication-kubeconfig=" + kubeconfig("controller-manager"),
			"--authorization-kubeconfig=" + kubeconfig("controller-manager"),
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--root-ca-file=" + certificates + "/ca.crt",
			"--service-account-private-key-file=" + certificates + "/service-account.key",
			"--cluster-signing-cert-file=" + certificates + "/ca.crt",
			"--cluster-signing-key-file=" + certificates + "/ca.key",
			"--flex-volume-plugin-dir=/run/flexvolume",
			"--kube-api-qps=500",
			"--kube-api-burst=1000",
			// With these settings, a lost node is detected within seconds, and its pods are evicted even if it is the
			// only node.
			"--node-monitor-period=1s",
			"--node-monitor-grace-period=8s",
			"--node-eviction-rate=10",
			"--secondary-node-eviction-rate=10",
			"--large-cluster-size-threshold=0",
		},
	}
}

func scheduler() machine.Process {
	return machine.Process{
		Name:  "kube-scheduler",
		Path:  kubernetes + "/kube-scheduler",
		After: afterRoles,
		Args: []string{
			"--config=" + path.Join(layout.Config, "scheduler.yaml"),
			"--authentication-kubeconfig=" + kubeconfig("scheduler"),
			"--authorization-kubeconfig=" + kubeconfig("scheduler"),
			"--bind-address=127.0.0.1",
		},
	}
}

func proxy() machine.Process {
	return machine.Process{
		Name:  "kube-proxy",
		Path:  kubernetes + "/kube-proxy",
		After: afterAPI,
		Args:  []string{"--config=" + path.Join(layout.Config, "proxy.yaml")},
	}
}

// objects returns the process that applies the objects that every sandbox has, including the roles for DNS and the
// provisioners.
func objects() machine.Process {
	return machine.Process{
		Name:  "objects",
		Path:  machine.Self(),
		Args:  []string{"apply-objects", "--kubeconfig=" + kubeconfig("admin"), objectsFile},
		After: afterRoles,
		Once:  true,
	}
}

func dns() machine.Process {
	return machine.Process{
		Name:  "coredns",
		Path:  layout.Programs + "/coredns/coredns",
		After: []string{"done:///objects"},
		Args:  []string{"-conf=" + path.Join(layout.Config, "Corefile")},
	}
}

func kubeconfig(user string) string { return path.Join(layout.Config, user+".kubeconfig") }
