// Package build builds the sandbox's programs from source. It builds each program once and stores it in the user's
// cache directory.
package build

import "time"

// These are the versions of the sandbox's components, which the go.mod files pin.
const (
	KubernetesVersion = "v1.36.3"
	ContainerdVersion = "v2.4.2"
	CoreDNSVersion    = "v1.15.0"
)

// EtcdVersions lists the etcd versions whose images every node has. The API server uses the last version.
var EtcdVersions = []string{"v3.5.35", "v3.6.16", "v3.7.3"}

// Component is a Go module in sandbox/build and the programs built from it.
type Component struct {
	Name     string // name of the component and of its module's directory
	Version  string
	Programs []Program
	Tags     string
	LDFlags  string
	Takes    time.Duration // build time on two cores with an empty cache; shown to waiting users
}

// Program is an executable of a component.
type Program struct {
	Name    string
	Package string
	Links   []string // other names under which the program is called
}

// Components lists all components in build order.
func Components() []Component {
	all := []Component{probe(), kubernetes(), containerd(), coredns()}
	for _, version := range EtcdVersions {
		all = append(all, Etcd(version))
	}
	return all
}

func probe() Component {
	return Component{Name: "probe", Version: "v1", Takes: 5 * time.Second,
		Programs: []Program{{Name: "probe", Package: "."}}}
}

func kubernetes() Component {
	const version = "k8s.io/component-base/version."
	return Component{
		Name: "kubernetes", Version: KubernetesVersion, Takes: 5 * time.Minute,
		Programs: []Program{{Name: "kube", Package: ".", Links: []string{
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl",
		}}},
		LDFlags: "-X " + version + "gitVersion=" + KubernetesVersion + " -X " + version + "gitMajor=1 -X " + version +
			"gitMinor=36",
	}
}

func containerd() Component {
	const module = "github.com/containerd/containerd/v2/"
	return Component{
		Name: "containerd", Version: ContainerdVersion, Takes: time.Minute,
		Programs: []Program{
			{Name: "containerd", Package: module + "cmd/containerd"},
			{Name: "containerd-shim-runc-v2", Package: module + "cmd/containerd-shim-runc-v2"},
			{Name: "ctr", Package: module + "cmd/ctr"},
		},
		Tags:    "no_btrfs,no_zfs,no_devmapper",
		LDFlags: "-X " + module + "version.Version=" + ContainerdVersion,
	}
}

func coredns() Component {
	return Component{Name: "coredns", Version: CoreDNSVersion, Takes: time.Minute,
		Programs: []Program{{Name: "coredns", Package: "."}}}
}

// Etcd returns the component for an etcd version, which must be one of EtcdVersions.
func Etcd(version string) Component {
	const module = "go.etcd.io/etcd/"
	return Component{
		Name: "etcd-" + version, Version: version, Takes: 30 * time.Second,
		Programs: []Program{
			{Name: "etcd", Package: module + "server/v3"},
			{Name: "etcdctl", Package: module + "etcdctl/v3"},
			{Name: "etcdutl", Package: module + "etcdutl/v3"},
		},
	}
}
