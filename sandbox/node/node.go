// Package node describes the machine of a node, which runs containerd, the kubelet and the provisioner of the node's
// volumes.
package node

import (
	"fmt"
	"path"

	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
	"quorate.dev/quorate/sandbox/pki"
)

// Config holds the settings that differ between nodes.
type Config struct {
	Node                   layout.Node
	Dir, Cgroup            string
	Kubernetes, Containerd string // host directories of the programs
	ImageCache             string // directory with the archives that Images lists
	Images                 []string
	LoadedImages           string // directory of additional archives, all of which are imported
	Certificates           pki.Store
}

const (
	kubernetes            = layout.Programs + "/kubernetes"
	containerd            = layout.Programs + "/containerd"
	imageCache            = "/run/images/built"
	loaded                = "/run/images/loaded"
	provisionerKubeconfig = layout.Config + "/provisioner.kubeconfig"
	kubeletKubeconfig     = layout.Config + "/kubelet.kubeconfig"
)

// Spec returns the spec of the node's machine.
func Spec(c Config) (machine.Spec, error) {
	files, err := files(c)
	if err != nil {
		return machine.Spec{}, err
	}
	return machine.Spec{
		Name:   c.Node.Name(),
		Dir:    c.Dir,
		Cgroup: c.Cgroup,
		Mounts: []machine.Mount{
			{Source: c.Kubernetes, Target: kubernetes},
			{Source: c.Containerd, Target: containerd},
			{Source: c.ImageCache, Target: imageCache},
			{Source: c.LoadedImages, Target: loaded},
		},
		Files:     files,
		Masks:     kernelSettings(),
		Processes: []machine.Process{runtime(), images(c), kubelet(c), provisioner(c)},
	}, nil
}

// kernelSettings returns the kernel settings that the kubelet would change if they had different values. They belong to
// the whole host, so the machine sees masks with the values that the kubelet requires.
func kernelSettings() map[string]string {
	return map[string]string{
		"/proc/sys/vm/overcommit_memory":      "1\n",
		"/proc/sys/vm/panic_on_oom":           "0\n",
		"/proc/sys/kernel/panic":              "10\n",
		"/proc/sys/kernel/panic_on_oops":      "1\n",
		"/proc/sys/kernel/keys/root_maxkeys":  "1000000\n",
		"/proc/sys/kernel/keys/root_maxbytes": "25000000\n",
	}
}

func runtime() machine.Process {
	return machine.Process{
		Name: "containerd",
		Path: containerd + "/containerd",
		Args: []string{"--config=" + path.Join(layout.Config, "containerd.toml")},
		Env:  []string{"PATH=" + containerd + ":/usr/sbin:/usr/bin:/sbin:/bin"}, // to find the shim
	}
}

// images returns the process that imports all images that the node does not have yet, before the kubelet needs them.
func images(c Config) machine.Process {
	args := []string{"import-images", "--ctr=" + containerd + "/ctr", loaded}
	for _, image := range c.Images {
		args = append(args, path.Join(imageCache, image))
	}
	return machine.Process{
		Name:  "images",
		Path:  machine.Self(),
		Args:  args,
		After: []string{"unix://" + layout.ContainerdSocket},
		Once:  true,
	}
}

func kubelet(c Config) machine.Process {
	return machine.Process{
		Name: "kubelet",
		Path: kubernetes + "/kubelet",
		Args: []string{
			"--config=" + path.Join(layout.Config, "kubelet.yaml"),
			"--kubeconfig=" + kubeletKubeconfig,
			"--hostname-override=" + c.Node.Name(),
			"--node-ip=" + c.Node.Address(),
			"--node-labels=topology.kubernetes.io/zone=" + c.Node.Zone(),
		},
		After: []string{"done:///images", "unix://" + layout.ContainerdSocket, "tcp://" + layout.APIServer},
	}
}

func provisioner(c Config) machine.Process {
	return machine.Process{
		Name: "provisioner",
		Path: machine.Self(),
		Args: []string{"provisioner", "--node=" + c.Node.Name(), "--kubeconfig=" + provisionerKubeconfig,
			"--volumes=" + layout.Volumes},
		// DNS starts only after the sandbox's objects, including the provisioner's role, have been applied.
		After: []string{"tcp://" + layout.ControlPlane + ":53"},
	}
}

func files(c Config) (map[string]string, error) {
	authority, err := c.Certificates.Authority()
	if err != nil {
		return nil, err
	}
	name := c.Node.Name()
	identity, err := c.Certificates.Client(name, "system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	serving, err := c.Certificates.Server(name+"-serving", []string{name}, []string{c.Node.Address()})
	if err != nil {
		return nil, err
	}
	volumes, err := c.Certificates.Client("provisioner", "quorate-sandbox:provisioner")
	if err != nil {
		return nil, err
	}
	server := "https://" + layout.APIServer
	return map[string]string{
		kubeletKubeconfig:              pki.Kubeconfig(server, authority, identity),
		provisionerKubeconfig:          pki.Kubeconfig(server, authority, volumes),
		layout.Config + "/ca.crt":      authority.Certificate,
		layout.Config + "/kubelet.crt": serving.Certificate,
		layout.Config + "/kubelet.key": serving.Key,
		layout.Config + "/kubelet.yaml": fmt.Sprintf(kubeletConfig, c.Node.Address(), layout.ControlPlane,
			layout.ClusterDomain),
		layout.Config + "/containerd.toml": fmt.Sprintf(containerdConfig, PauseImage),
		cniDir + "/10-sandbox.conflist":    fmt.Sprintf(cniConfig, c.Node.PodCIDR()),
	}, nil
}
