package gitsource

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"quorate.dev/quorate/gitsource/remote"
)

const aDay = 24 * time.Hour

func TestClientCertificate(t *testing.T) {
	r := newRepository(t)
	r.declare("a")
	authority := newAuthority(t)
	server := authority.serve(r.gitServer(), tls.RequireAndVerifyClientCert, aDay, "127.0.0.1")
	auth := remote.Auth{CABundle: authority.pem()}
	auth.ClientCertificate, auth.ClientKey = authority.pair(aDay, "person")
	desired, err := Fetch(t.Context(), Options{Location: server.URL + "/.git", Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	wantClusters(t, desired, "a")
}

// Only the server of the repository is shown the certificate, though another asks for it too.
func TestClientCertificateStaysWithTheServer(t *testing.T) {
	r := newRepository(t)
	r.declare("a")
	authority := newAuthority(t)
	var shown atomic.Bool
	git := r.gitServer()
	other := authority.serve(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		shown.Store(shown.Load() || len(request.TLS.PeerCertificates) > 0 || request.Header.Get("Authorization") != "")
		git.ServeHTTP(w, request)
	}), tls.RequestClientCert, aDay, "127.0.0.1")
	start := authority.serve(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, other.URL+request.URL.RequestURI(), http.StatusMovedPermanently)
	}), tls.RequireAndVerifyClientCert, aDay, "127.0.0.1")
	auth := remote.Auth{CABundle: authority.pem(), Password: secret}
	auth.ClientCertificate, auth.ClientKey = authority.pair(aDay, "person")
	desired, err := Fetch(t.Context(), Options{Location: start.URL + "/.git", Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	wantClusters(t, desired, "a")
	if shown.Load() {
		t.Error("the certificate or the password was shown to the other server")
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, auth := range []remote.Auth{{}, {CABundle: ca}} {
		wantError(t, Options{Location: server.URL + "/.git", Auth: auth}, ErrSource, "protocol version")
	}
}

// Credentials go to the machine itself without encryption, and to no other.
func TestPlainHTTP(t *testing.T) {
	r := newRepository(t)
	r.declare("a")
	git := r.gitServer()
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
		desired, err := Fetch(t.Context(), Options{Location: strings.Replace(server.URL, "127.0.0.1", host, 1) + "/.git", Auth: auth})
		if err != nil {
			t.Fatal(err)
		}
		wantClusters(t, desired, "a")
	}
	for _, host := range []string{"http://git.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1", "http://[fe80::1]", "http://0.0.0.0"} {
		wantError(t, Options{Location: host + "/x.git", Auth: auth}, ErrOptions, "in the clear")
	}
	wantError(t, Options{Location: server.URL + "/.git", Auth: auth, Proxy: "http://proxy.example.com"}, ErrOptions, "in the clear")
}

// A session is not opened with what Check refuses, though nobody has called it.
func TestOpenIsCareful(t *testing.T) {
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

// A proxy of the source's own, by either protocol.
func TestProxies(t *testing.T) {
	r := newRepository(t)
	r.declare("a")
	authority := newAuthority(t)
	server := authority.serve(r.gitServer(), tls.NoClientCert, aDay, "git.example.com")
	through := newProxy(t, server.Listener.Addr().String())
	through.password = secret
	auth := remote.Auth{CABundle: authority.pem(), ProxyUsername: "x", ProxyPassword: secret}
	o := Options{Location: "https://git.example.com/.git", Auth: auth, Proxy: through.URL}
	desired, err := Fetch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	wantClusters(t, desired, "a")
	pair, err := tls.X509KeyPair(authority.pair(aDay, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	encrypted := httptest.NewUnstartedServer(through)
	encrypted.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	encrypted.StartTLS()
	t.Cleanup(encrypted.Close)
	o.Proxy = encrypted.URL
	if desired, err = Fetch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	wantClusters(t, desired, "a")
	if through.asked.Load() < 2 {
		t.Error("nothing went through the proxy")
	}
	o.Proxy = "socks5://" + newSOCKS(t, server.Listener.Addr().String())
	if desired, err = Fetch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	wantClusters(t, desired, "a")
}

// fetchElsewhere fetches in a process of its own, with its own environment, and returns what it
// finds there.
func fetchElsewhere(t *testing.T, o Options, environment ...string) string {
	t.Helper()
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFetchHere$")
	cmd.Env = append(environment, "QUORATE_TEST_OPTIONS="+string(encoded), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, found, _ := strings.Cut(string(out), "found: ")
	found, _, _ = strings.Cut(found, "\n")
	return found
}

// TestFetchHere is what fetchElsewhere runs; by itself it does nothing.
func TestFetchHere(t *testing.T) {
	encoded := os.Getenv("QUORATE_TEST_OPTIONS")
	if encoded == "" {
		return
	}
	var o Options
	if err := json.Unmarshal([]byte(encoded), &o); err != nil {
		t.Fatal(err)
	}
	desired, err := Fetch(t.Context(), o)
	if err != nil {
		fmt.Fprintln(os.Stdout, "found:", err)
		return
	}
	for _, c := range desired.Clusters {
		fmt.Fprintln(os.Stdout, "found:", c.Cluster.Name)
	}
}

func TestProxiesOfTheEnvironment(t *testing.T) {
	r := newRepository(t)
	r.declare("a")
	authority := newAuthority(t)
	server := authority.serve(r.gitServer(), tls.NoClientCert, aDay, "git.example.com")
	through := newProxy(t, server.Listener.Addr().String())
	o := Options{Location: "https://git.example.com/.git", Auth: remote.Auth{CABundle: authority.pem()}}
	if found := fetchElsewhere(t, o, "HTTPS_PROXY="+through.URL); found != "a" {
		t.Errorf("found %s", found)
	}
	if found := fetchElsewhere(t, o, "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=git.example.com"); strings.Contains(found, "proxy") {
		t.Errorf("found %s", found)
	}
	o.Proxy = through.URL
	if found := fetchElsewhere(t, o, "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=git.example.com"); found != "a" {
		t.Errorf("found %s", found)
	}
}

// No program is run, no agent asked, and nothing in the home directory is read, whatever invites to
// it.
func TestNoProgramIsRun(t *testing.T) {
	keys := sshKeys(t)
	r := newRepository(t)
	r.declare("a")
	authority := newAuthority(t)
	https := authority.serve(r.gitServer(), tls.NoClientCert, aDay, "127.0.0.1")
	host := r.serveSSH(keys, hostKeys(keys, "host")...)
	marks, programs, home := t.TempDir(), t.TempDir(), t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n: > %s/\"${0##*/}\"\n", marks)
	for _, name := range []string{"git", "ssh", "ssh-keygen", "ssh-agent", "ssh-add", "git-upload-pack", "git-remote-https", "git-credential-x", "gpg", "sh"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	agent, err := net.Listen("unix", filepath.Join(home, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 100)
	go func() {
		for {
			c, err := agent.Accept()
			if err != nil {
				close(asked)
				return
			}
			c.Close()
			asked <- struct{}{}
		}
	}()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(home, ".ssh", "config"), "Host *\nHostname 127.0.0.2\nPort 1\nProxyCommand "+filepath.Join(programs, "ssh")+"\n")
	mustWrite(t, filepath.Join(home, ".gitconfig"), "[core]\nsshCommand = ssh\n[credential]\nhelper = x\n[url \"https://127.0.0.1:1/\"]\ninsteadOf = ssh://\n")
	environment := []string{"PATH=" + programs, "HOME=" + home, "SSH_AUTH_SOCK=" + agent.Addr().String(), "SHELL=" + programs + "/sh",
		"GIT_SSH=" + programs + "/ssh", "GIT_SSH_COMMAND=" + programs + "/ssh", "GIT_ASKPASS=" + programs + "/git-credential-x",
		"SSH_ASKPASS=" + programs + "/ssh-add", "SSH_KNOWN_HOSTS=" + mustWrite(t, filepath.Join(home, "known_hosts"), known(t, keys, host.address(), "host"))}
	path := filepath.Join(r.dir, ".git")
	for _, o := range []Options{
		{Location: r.dir},
		{Location: https.URL + "/.git", Auth: remote.Auth{CABundle: authority.pem()}},
		{Location: host.url(path), Auth: sshAuth(t, keys, "person", known(t, keys, host.address(), "host"))},
	} {
		if found := fetchElsewhere(t, o, environment...); found != "a" {
			t.Errorf("%s: found %s", o.Location, found)
		}
	}
	// What only the home directory knows is not known.
	if found := fetchElsewhere(t, Options{Location: host.url(path), Auth: sshAuth(t, keys, "person", "")}, environment...); !strings.Contains(found, "ask those who run it") {
		t.Errorf("found %s", found)
	}
	agent.Close()
	for range asked {
		t.Error("the agent was asked")
	}
	left, err := os.ReadDir(marks)
	if err != nil || len(left) > 0 {
		t.Errorf("programs were run: %v, %v", left, err)
	}
	// And the trap works.
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "git"))
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(marks); err != nil || len(left) != 1 {
		t.Errorf("the program left no mark: %v, %v", left, err)
	}
}

// The authorities of the system are trusted besides those that are given, unless only these are to
// be.
func TestCAOnly(t *testing.T) {
	if location := os.Getenv("QUORATE_TEST_CA_ONLY"); location != "" { // a process reads the system's authorities once
		for _, bundle := range []string{"other", "own"} {
			for _, only := range []bool{false, true} {
				_, err := Fetch(t.Context(), Options{Location: location, Auth: remote.Auth{CAOnly: only, CABundle: mustRead(t, bundle)}})
				fmt.Fprintf(os.Stdout, "%s, only these %v: trusted %v\n", bundle, only, err == nil || !strings.Contains(err.Error(), "unknown authority"))
			}
		}
		return
	}
	r := newRepository(t)
	r.declare("a")
	authority, dir := newAuthority(t), t.TempDir()
	mustWrite(t, filepath.Join(dir, "own"), string(authority.pem()))
	mustWrite(t, filepath.Join(dir, "other"), string(newAuthority(t).pem()))
	server := authority.serve(r.gitServer(), tls.NoClientCert, aDay, "127.0.0.1")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCAOnly$")
	child.Dir = dir
	child.Env = []string{"QUORATE_TEST_CA_ONLY=" + server.URL + "/.git", "SSL_CERT_FILE=own", "SSL_CERT_DIR=none"}
	out, err := child.CombinedOutput()
	want := "other, only these false: trusted true\nother, only these true: trusted false\nown, only these false: trusted true\nown, only these true: trusted true\nPASS\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

// gitHub is the part of GitHub's API that gives out tokens, with a server of git that takes the
// last of them.
type gitHub struct {
	key    *rsa.PrivateKey
	status int
	header http.Header
	given  atomic.Int32
	body   string
	// asked is what the last token was asked to be good for.
	asked any
}

func newGitHub(t *testing.T) *gitHub {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &gitHub{key: key}
}

func (g *gitHub) app(base string) remote.GitHubApp {
	return remote.GitHubApp{ID: "12", InstallationID: "34", BaseURL: base + "/api/v3",
		PrivateKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(g.key)})}
}

func (g *gitHub) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	for name := range g.header {
		w.Header().Set(name, g.header.Get(name))
	}
	switch {
	case g.status != 0:
		http.Error(w, "\x1b[31mthe server's words", g.status)
		return
	case request.Method != http.MethodPost || request.URL.Path != "/api/v3/app/installations/34/access_tokens":
		http.Error(w, "no such path", http.StatusNotFound)
		return
	}
	if err := g.believes(strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var asked any
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.asked = asked
	w.WriteHeader(http.StatusCreated)
	if g.body != "" {
		fmt.Fprint(w, g.body)
		return
	}
	fmt.Fprintf(w, `{"token": "%s%d", "expires_at": "2030-01-01T00:00:00Z", "permissions": {"contents": "read"}}`, secret, g.given.Add(1))
}

// believes checks what an app says of itself as GitHub does.
func (g *gitHub) believes(claim string) error {
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(claim, &claims, func(*jwt.Token) (any, error) { return g.key.Public(), nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer("12"), jwt.WithIssuedAt(), jwt.WithExpirationRequired())
	if err != nil {
		return err
	}
	if ahead := time.Until(claims.ExpiresAt.Time); ahead > 10*time.Minute || time.Since(claims.IssuedAt.Time) < 50*time.Second {
		return fmt.Errorf("issued %s, expires %s", claims.IssuedAt, claims.ExpiresAt)
	}
	return nil
}

// Each fetch has a token of its own, which git is shown and nobody else.
func TestGitHubApp(t *testing.T) {
	r := newRepository(t)
	r.declare("a")
	hub := newGitHub(t)
	authority := newAuthority(t)
	api := authority.serve(hub, tls.NoClientCert, aDay, "127.0.0.1")
	git := r.gitServer()
	server := authority.serve(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		name, password, _ := request.BasicAuth()
		if want := fmt.Sprint(secret, hub.given.Load()); name != "x-access-token" || password != want {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		path, _ := strings.CutPrefix(request.URL.Path, "/owner/")
		_, path, _ = strings.Cut(path, "/")
		request.URL.Path = "/.git/" + strings.TrimLeft(path, "/")
		git.ServeHTTP(w, request)
	}), tls.NoClientCert, aDay, "127.0.0.1")
	o := Options{Auth: remote.Auth{CABundle: authority.pem(), GitHubApp: hub.app(api.URL)}}
	for path, name := range map[string]string{"/owner/fleet.git": "fleet", "/owner/fleet": "fleet", "/owner/etcd.fleet_1-x.git/": "etcd.fleet_1-x"} {
		o.Location = server.URL + path
		desired, err := Fetch(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		wantClusters(t, desired, "a")
		want := map[string]any{"repositories": []any{name}, "permissions": map[string]any{"contents": "read"}}
		if !reflect.DeepEqual(hub.asked, want) {
			t.Errorf("a token was asked for that is good for %v, want %v", hub.asked, want)
		}
	}
	if hub.given.Load() != 3 {
		t.Errorf("%d tokens were given out, want 3", hub.given.Load())
	}
	for _, printed := range []string{fmt.Sprintf("%v %+v %#v %s", o, o, o, o.Auth.GitHubApp), fmt.Sprintf("%+v %#v", o.Auth.GitHubApp, o.Auth.GitHubApp)} {
		if strings.Contains(printed, "PRIVATE") || strings.Contains(printed, fmt.Sprint([]byte("-----BEGIN"))[1:20]) {
			t.Errorf("%s tells the key", printed)
		}
	}
}
