package node

import "quorate.dev/quorate/sandbox/layout"

// PauseImage is the image of the pause container, which holds a pod's namespaces.
const PauseImage = "quorate.dev/sandbox/pause:v1"

const cniDir = layout.Config + "/cni"

// With short timeouts, a lost node is detected within seconds. Without rate limits, pods start immediately. Memory and
// disk pressure are left to the host.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
healthzBindAddress: %[1]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: ` + layout.Config + `/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: ` + layout.Config + `/kubelet.crt
tlsPrivateKeyFile: ` + layout.Config + `/kubelet.key
containerRuntimeEndpoint: unix://` + layout.ContainerdSocket + `
clusterDNS: [%[2]s]
clusterDomain: %[3]s
resolvConf: ""
volumePluginDir: /run/flexvolume
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 8
kubeAPIQPS: 500
kubeAPIBurst: 1000
eventRecordQPS: 0
registryPullQPS: 0
serializeImagePulls: false
imageGCHighThresholdPercent: 100
evictionHard:
  memory.available: 50Mi
  nodefs.available: 1%%
  nodefs.inodesFree: 1%%
  imagefs.available: 1%%
`

// On an unprivileged host, containerd may not be allowed to lower a process's OOM score, so it is restricted to values
// that are allowed.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
  address = "` + layout.ContainerdSocket + `"

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "%s"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "` + cniDir + `"

[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "/usr/sbin/runc"
  SystemdCgroup = false
`

// Every pod has its own link to the network, and all traffic is routed. Replies from Services therefore return by the
// same path, without bridge filtering.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "sandbox",
  "plugins": [{
    "type": "ptp",
    "ipam": {
      "type": "host-local",
      "dataDir": "/run/cni",
      "ranges": [[{"subnet": "%s"}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`
