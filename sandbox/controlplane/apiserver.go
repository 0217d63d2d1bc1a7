package controlplane

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
)

const (
	issuer     = "https://kubernetes.default.svc." + layout.ClusterDomain
	frontProxy = "front-proxy"
)

func apiServer() machine.Process {
	return machine.Process{
		Name:  "kube-apiserver",
		Path:  kubernetes + "/kube-apiserver",
		After: []string{strings.Replace(etcdURL, "http://", "tcp://", 1)},
		Args: []string{
			"--etcd-servers=" + etcdURL,
			"--advertise-address=" + layout.ControlPlane,
			fmt.Sprintf("--secure-port=%d", layout.APIServerPort),
			"--tls-cert-file=" + certificates + "/apiserver.crt",
			"--tls-private-key-file=" + certificates + "/apiserver.key",
			"--client-ca-file=" + certificates + "/ca.crt",
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--allow-privileged=true",
			"--service-cluster-ip-range=" + layout.ServiceCIDR,
			"--service-account-issuer=" + issuer,
			"--service-account-key-file=" + certificates + "/service-account.crt",
			"--service-account-signing-key-file=" + certificates + "/service-account.key",
			// The API server uses these to contact kubelets for logs, exec and port-forward.
			"--kubelet-client-certificate=" + certificates + "/kubelet-client.crt",
			"--kubelet-client-key=" + certificates + "/kubelet-client.key",
			"--kubelet-certificate-authority=" + certificates + "/ca.crt",
			"--kubelet-preferred-address-types=InternalIP",
			// Aggregated API servers use these settings to authenticate the API server.
			"--requestheader-client-ca-file=" + certificates + "/ca.crt",
			"--requestheader-allowed-names=" + frontProxy,
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + certificates + "/front-proxy.crt",
			"--proxy-client-key-file=" + certificates + "/front-proxy.key",
			"--default-not-ready-toleration-seconds=10",
			"--default-unreachable-toleration-seconds=10",
		},
	}
}

// apiServerNames returns the host names under which clients inside and outside the sandbox reach the API server.
func apiServerNames() []string {
	return []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + layout.ClusterDomain,
	}
}

func apiServerAddresses() []string {
	return []string{"127.0.0.1", layout.ControlPlane, layout.APIServerService}
}
