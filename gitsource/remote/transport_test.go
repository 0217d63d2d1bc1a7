package remote_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/remote"
)

func TestClientCertificateIsPresented(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	authority := gittest.NewAuthority(t)
	server := authority.Serve(r.Handler(), tls.RequireAndVerifyClientCert, gittest.Day, "127.0.0.1")
	auth := remote.Auth{CABundle: authority.PEM()}
	auth.ClientCertificate, auth.ClientKey = authority.Pair(gittest.Day, "person")
	wantFetched(t, remote.Repository{URL: server.URL + "/.git", Auth: auth})
}

// TestRedirectDropsClientCertificate checks that the client certificate is presented only to the repository's server,
// even if another server requests it.
func TestRedirectDropsClientCertificate(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	authority := gittest.NewAuthority(t)
	var shown atomic.Bool
	git := r.Handler()
	other := authority.Serve(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		shown.Store(shown.Load() || len(request.TLS.PeerCertificates) > 0 || request.Header.Get("Authorization") != "")
		git.ServeHTTP(w, request)
	}), tls.RequestClientCert, gittest.Day, "127.0.0.1")
	start := authority.Serve(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, other.URL+request.URL.RequestURI(), http.StatusMovedPermanently)
	}), tls.RequireAndVerifyClientCert, gittest.Day, "127.0.0.1")
	auth := remote.Auth{CABundle: authority.PEM(), Password: secret}
	auth.ClientCertificate, auth.ClientKey = authority.Pair(gittest.Day, "person")
	wantFetched(t, remote.Repository{URL: start.URL + "/.git", Auth: auth})
	if shown.Load() {
		t.Error("the certificate or the password was shown to the other server")
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	server.Config.ErrorLog = gittest.Quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, auth := range []remote.Auth{{}, {CABundle: ca}} {
		wantError(t, remote.Repository{URL: server.URL + "/.git", Auth: auth}, "protocol version")
	}
}

// TestPlainHTTPCredentialsOnlyToLocalhost checks that credentials are sent without encryption only to this machine.
func TestPlainHTTPCredentialsOnlyToLocalhost(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	git := r.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if name, password, _ := request.BasicAuth(); name != "git" || password != secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	auth := remote.Auth{Password: secret}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		wantFetched(t, remote.Repository{URL: strings.Replace(server.URL, "127.0.0.1", host, 1) + "/.git", Auth: auth})
	}
	for _, host := range []string{"http://git.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1", "http://[fe80::1]", "http://0.0.0.0"} {
		wantError(t, remote.Repository{URL: host + "/x.git", Auth: auth}, "unencrypted")
	}
	wantError(t, remote.Repository{URL: server.URL + "/.git", Auth: auth, Proxy: "http://proxy.example.com"}, "unencrypted")
}

// TestOpenRejectsInvalidRepository checks that opening a session fails if Check would reject the repository, even if
// Check was not called.
func TestOpenRejectsInvalidRepository(t *testing.T) {
	for _, r := range []remote.Repository{
		{URL: "https://x:" + secret + "@git.example.com/x.git"},
		{URL: "ssh://x:" + secret + "@git.example.com/x.git"},
		{URL: "http://git.example.com/x.git", Auth: remote.Auth{Password: secret}},
		{URL: "git@git.example.com:x.git", Auth: remote.Auth{Password: secret}},
	} {
		session, err := remote.Open(t.Context(), r)
		if err == nil {
			session.Close()
		}
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "fetch") {
			t.Errorf("error %v", err)
		}
	}
}

// TestSourceProxyIsUsed checks that the source's own proxy works over HTTP and SOCKS.
func TestSourceProxyIsUsed(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	authority := gittest.NewAuthority(t)
	server := authority.Serve(r.Handler(), tls.NoClientCert, gittest.Day, "git.example.com")
	through := gittest.NewProxy(t, server.Listener.Addr().String())
	through.Password = secret
	auth := remote.Auth{CABundle: authority.PEM(), ProxyUsername: "x", ProxyPassword: secret}
	o := remote.Repository{URL: "https://git.example.com/.git", Auth: auth, Proxy: through.URL}
	wantFetched(t, o)
	pair, err := tls.X509KeyPair(authority.Pair(gittest.Day, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	encrypted := httptest.NewUnstartedServer(through)
	encrypted.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	encrypted.StartTLS()
	t.Cleanup(encrypted.Close)
	o.Proxy = encrypted.URL
	wantFetched(t, o)
	if through.Asked.Load() < 2 {
		t.Error("nothing went through the proxy")
	}
	o.Proxy = "socks5://" + gittest.NewSOCKS(t, server.Listener.Addr().String())
	wantFetched(t, o)
}

// TestCAOnly checks that the system's authorities are trusted in addition to the given authorities, unless CAOnly is
// set.
func TestCAOnly(t *testing.T) {
	if location := os.Getenv("QUORATE_TEST_CA_ONLY"); location != "" { // each process loads the authorities only once
		for _, bundle := range []string{"other", "own"} {
			for _, only := range []bool{false, true} {
				err := fetch(t.Context(), remote.Repository{URL: location, Auth: remote.Auth{CAOnly: only, CABundle: gittest.MustRead(t, bundle)}})
				fmt.Fprintf(os.Stdout, "%s, only these %v: trusted %v\n", bundle, only, err == nil || !strings.Contains(err.Error(), "unknown authority"))
			}
		}
		return
	}
	r := gittest.NewRepository(t)
	r.Declare("a")
	authority, dir := gittest.NewAuthority(t), t.TempDir()
	gittest.MustWrite(t, filepath.Join(dir, "own"), string(authority.PEM()))
	gittest.MustWrite(t, filepath.Join(dir, "other"), string(gittest.NewAuthority(t).PEM()))
	server := authority.Serve(r.Handler(), tls.NoClientCert, gittest.Day, "127.0.0.1")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCAOnly$")
	child.Dir = dir
	child.Env = []string{"QUORATE_TEST_CA_ONLY=" + server.URL + "/.git", "SSL_CERT_FILE=own", "SSL_CERT_DIR=none"}
	out, err := child.CombinedOutput()
	want := "other, only these false: trusted true\nother, only these true: trusted false\nown, only these false: trusted true\nown, only these true: trusted true\nPASS\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGitHubApp checks that each fetch obtains its own token, which is sent only to the git server.
func TestGitHubApp(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	hub := gittest.NewGitHub(t)
	authority := gittest.NewAuthority(t)
	api := authority.Serve(hub, tls.NoClientCert, gittest.Day, "127.0.0.1")
	git := r.Handler()
	server := authority.Serve(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		name, password, _ := request.BasicAuth()
		if want := fmt.Sprint(secret, hub.Given.Load()); name != "x-access-token" || password != want {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		path, _ := strings.CutPrefix(request.URL.Path, "/owner/")
		_, path, _ = strings.Cut(path, "/")
		request.URL.Path = "/.git/" + strings.TrimLeft(path, "/")
		git.ServeHTTP(w, request)
	}), tls.NoClientCert, gittest.Day, "127.0.0.1")
	o := remote.Repository{Auth: remote.Auth{CABundle: authority.PEM(), GitHubApp: hub.App(api.URL)}}
	for path, name := range map[string]string{"/owner/fleet.git": "fleet", "/owner/fleet": "fleet", "/owner/etcd.fleet_1-x.git/": "etcd.fleet_1-x"} {
		o.URL = server.URL + path
		wantFetched(t, o)
		want := map[string]any{"repositories": []any{name}, "permissions": map[string]any{"contents": "read"}}
		if !reflect.DeepEqual(hub.Asked, want) {
			t.Errorf("a token was requested with permissions %v, want %v", hub.Asked, want)
		}
	}
	if hub.Given.Load() != 3 {
		t.Errorf("%d tokens were given out, want 3", hub.Given.Load())
	}
	for _, printed := range []string{fmt.Sprintf("%v %+v %#v %s", o, o, o, o.Auth.GitHubApp), fmt.Sprintf("%+v %#v", o.Auth.GitHubApp, o.Auth.GitHubApp)} {
		if strings.Contains(printed, "PRIVATE") || strings.Contains(printed, fmt.Sprint([]byte("-----BEGIN"))[1:20]) {
			t.Errorf("%s contains the key", printed)
		}
	}
}
