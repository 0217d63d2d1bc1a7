package scenarios

import (
	"net/url"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// newProxy starts a proxy for the API server.
func (w *world) newProxy() *faultproxy.Proxy {
	w.t.Helper()
	return w.newProxyAs("")
}

// newProxyAs starts a proxy that sends every request as the given user, or as an administrator if user is empty.
func (w *world) newProxyAs(user string) *faultproxy.Proxy {
	w.t.Helper()
	config := rest.CopyConfig(w.config)
	config.NextProtos = []string{"http/1.1"}
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	transport, err := rest.TransportFor(config)
	if err != nil {
		w.t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	proxy, err := faultproxy.Start(target, transport)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(proxy.Close)
	return proxy
}

func (w *world) kubeconfigOf(proxy *faultproxy.Proxy) string {
	w.t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: proxy.URL}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	config.CurrentContext = "proxy"
	path := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.t.Fatal(err)
	}
	return path
}
