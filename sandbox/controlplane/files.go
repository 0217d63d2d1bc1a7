package controlplane

import (
	"fmt"
	"path"

	"quorate.dev/quorate/sandbox/cluster"
	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/pki"
)

// user is the identity with which a process of the machine authenticates to the API server.
type user struct {
	file, name string
	groups     []string
}

// Kubernetes defines the roles of the first three users. The role of coredns is one of the sandbox's objects, which the
// admin user applies.
var users = []user{
	{file: "controller-manager", name: "system:kube-controller-manager"},
	{file: "scheduler", name: "system:kube-scheduler"},
	{file: "proxy", name: "system:kube-proxy"},
	{file: "coredns", name: "quorate-sandbox:coredns"},
	{file: "admin", name: "quorate-sandbox:admin", groups: []string{"system:masters"}},
}

func files(store pki.Store) (map[string]string, error) {
	authority, err := store.Authority()
	if err != nil {
		return nil, err
	}
	serving, err := store.Server("apiserver", apiServerNames(), apiServerAddresses())
	if err != nil {
		return nil, err
	}
	kubelets, err := store.Client("kubelet-client", "quorate-sandbox:apiserver")
	if err != nil {
		return nil, err
	}
	proxying, err := store.Client(frontProxy, frontProxy)
	if err != nil {
		return nil, err
	}
	accounts, err := store.ServiceAccount()
	if err != nil {
		return nil, err
	}
	all := map[string]string{
		objectsFile: cluster.Objects,
		path.Join(layout.Config, "scheduler.yaml"): fmt.Sprintf(schedulerConfig, kubeconfig("scheduler")),
		path.Join(layout.Config, "proxy.yaml"): fmt.Sprintf(proxyConfig, kubeconfig("proxy"), layout.Node(1).Name(),
			layout.PodCIDR),
		path.Join(layout.Config, "Corefile"): fmt.Sprintf(corefile, layout.ClusterDomain, layout.ControlPlane,
			kubeconfig("coredns")),
	}
	for name, pair := range map[string]pki.Pair{
		"ca": authority, "apiserver": serving, "kubelet-client": kubelets, frontProxy: proxying,
		"service-account": accounts,
	} {
		all[path.Join(certificates, name+".crt")] = pair.Certificate
		all[path.Join(certificates, name+".key")] = pair.Key
	}
	for _, u := range users {
		client, err := store.Client(u.file, u.name, u.groups...)
		if err != nil {
			return nil, err
		}
		all[kubeconfig(u.file)] = pki.Kubeconfig("https://"+layout.APIServer, authority, client)
	}
	return all, nil
}

const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %s
  qps: 500
  burst: 1000
leaderElection:
  leaderElect: false
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
`

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection:
  kubeconfig: %s
hostnameOverride: %s
clusterCIDR: %s
detectLocalMode: ClusterCIDR
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
nftables:
  minSyncPeriod: 100ms
  syncPeriod: 30s
# The limits of connection tracking are the whole host's: leave them alone.
conntrack:
  maxPerCore: 0
  min: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
`

// Without the cache plugin, DNS responses are as current as CoreDNS's watch on the API server. For names outside the
// cluster, CoreDNS immediately returns NXDOMAIN.
const corefile = `%[1]s in-addr.arpa ip6.arpa {
    bind %[2]s
    errors
    ready 127.0.0.1:8181
    kubernetes %[1]s in-addr.arpa ip6.arpa {
        kubeconfig %[3]s
        pods insecure
        ttl 1
    }
}
. {
    bind %[2]s
    template ANY ANY {
        rcode NXDOMAIN
    }
}
`
