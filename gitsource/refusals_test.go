package gitsource

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/remote"
)

var rewrite = flag.Bool("rewrite", false, "update the expected output instead of comparing with it")

// refusals holds the exact error messages by the name of the attempt.
type refusals struct {
	t     *testing.T
	texts map[string]string
	names []string
}

// call replaces a value that differs between runs with a name.
func (r *refusals) call(value, name string) { r.names = append(r.names, value, name) }

func (r *refusals) add(name string, is error, o Options) {
	r.t.Helper()
	_, err := Fetch(r.t.Context(), o)
	r.addError(name, is, err)
}

func (r *refusals) addError(name string, is, err error) {
	r.t.Helper()
	if !errors.Is(err, is) {
		r.t.Errorf("%s: error %v, want %v", name, err, is)
		return
	}
	text := err.Error()
	for _, never := range []string{secret, "words", "\x1b", "PRIVATE"} {
		if strings.Contains(text, never) {
			r.t.Errorf("%s: the error contains %q: %q", name, never, text)
		}
	}
	text = strings.NewReplacer(r.names...).Replace(text)
	r.texts[name] = regexp.MustCompile(`127\.0\.0\.1\]?:[0-9]+`).ReplaceAllStringFunc(text, func(s string) string {
		host, _, _ := strings.Cut(s, ":")
		return host + ":PORT"
	})
}

// TestErrorMessagesMatchGolden compares the error messages with testdata/gitsource-remote/refusals.txt.
func TestErrorMessagesMatchGolden(t *testing.T) {
	r := &refusals{t: t, texts: map[string]string{}}
	r.addLocations()
	r.addCredentials()
	r.addHTTP()
	r.addTLS()
	r.addProxies()
	r.socksRefusals()
	r.addGitHubApps()
	r.addSSH()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		fmt.Fprintf(&b, "%s\n  %s\n\n", name, r.texts[name])
	}
	const file = "../testdata/gitsource-remote/refusals.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(gittest.MustRead(t, file)), b.String()); diff != "" {
		t.Errorf("want -, got +; read the difference, and run with -rewrite if it is meant:\n%s", diff)
	}
}

func (r *refusals) addLocations() {
	for _, location := range []string{
		"file:///srv/x.git", "git://git.example.com/x.git", "git+ssh://git.example.com/x.git", "ext::sh -c id", "https://git.example.com/x.git?a=b",
		"ssh://git@git.example.com", "ssh://-oProxyCommand=id/x.git", "ssh://-x@git.example.com/x.git", "-x@git.example.com:x.git", "git@-oProxyCommand=id:x.git",
		"git@git.example.com:--upload-pack=id", "git@git.example.com:", "ssh://git@git.example.com/x%0ay", "ssh://git@git.example.com/x.git#main",
	} {
		r.add("location "+location, ErrOptions, Options{Location: location})
	}
	r.add("location https with credentials", ErrOptions, Options{Location: "https://x:" + secret + "@git.example.com/x.git"})
	r.add("location ssh with a password", ErrOptions, Options{Location: "ssh://git:" + secret + "@git.example.com/x.git"})
	r.add("location http with ca-only", ErrOptions, Options{Location: "http://git.example.com/x.git", Auth: remote.Auth{CAOnly: true, CABundle: gittest.NewAuthority(r.t).PEM()}})
	r.add("location http with credentials beside it", ErrOptions, Options{Location: "http://git.example.com/x.git", Auth: remote.Auth{Password: secret}})
	for _, proxy := range []string{"proxy.example.com:3128", "ftp://proxy.example.com", "http://", "http://proxy.example.com/path", "http://x:" + secret + "@proxy.example.com"} {
		r.add("proxy "+strings.ReplaceAll(proxy, secret, "PASSWORD"), ErrOptions, Options{Location: "https://git.example.com/x.git", Proxy: proxy})
	}
}

func (r *refusals) addCredentials() {
	authority := gittest.NewAuthority(r.t)
	certificate, key := authority.Pair(gittest.Day, "x")
	_, otherKey := authority.Pair(gittest.Day, "x")
	here := gittest.MustWrite(r.t, filepath.Join(r.t.TempDir(), "known_hosts"), "git.example.com ssh-ed25519 garbage\n")
	r.call(filepath.Dir(here), "DIR")
	for name, auth := range map[string]remote.Auth{
		"bearerToken and password":    {BearerToken: secret, Username: "x", Password: secret},
		"username alone":              {Username: "x"},
		"tls.crt alone":               {ClientCertificate: certificate},
		"tls.key alone":               {ClientKey: key},
		"tls.crt and another tls.key": {ClientCertificate: certificate, ClientKey: otherKey},
		"no CA":                       {CABundle: []byte("x")},
		"ca-only and no CA":           {CAOnly: true},
		"known_hosts alone":           {KnownHosts: here},
		"passphrase alone":            {Passphrase: secret},
		"proxyPassword alone":         {ProxyPassword: secret},
		"App incomplete":              {GitHubApp: remote.GitHubApp{ID: "12"}},
		"App of nonsense": {GitHubApp: remote.GitHubApp{ID: "../x", InstallationID: "x", PrivateKey: key,
			BaseURL: "http://api.example.com"}},
		"App and password": {Password: secret, GitHubApp: gittest.NewGitHub(r.t).App("https://api.example.com")},
		"much":             {BearerToken: secret, Password: secret, ClientKey: key, CABundle: []byte("x"), Passphrase: secret, ProxyUsername: "x"},
	} {
		r.add("credentials: "+name, ErrOptions, Options{Location: "https://git.example.com/x.git", Auth: auth})
	}
}

func (r *refusals) addHTTP() {
	for name, status := range map[string]int{
		"credentials wanted": 401, "forbidden": 403, "not found": 404, "teapot": 418, "too many requests": 429, "broken": 500, "unavailable": 503,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "\x1b[31mthe server's words", status) }))
		r.t.Cleanup(server.Close)
		r.add("http: "+name, ErrSource, Options{Location: server.URL + "/x.git"})
		if status < 405 {
			r.add("http: "+name+", with a password", ErrSource, Options{Location: server.URL + "/x.git", Auth: remote.Auth{Password: secret}})
			r.add("http: "+name+", with a token", ErrSource, Options{Location: server.URL + "/x.git", Auth: remote.Auth{BearerToken: secret}})
		}
		elsewhere := httptest.NewServer(http.RedirectHandler(server.URL+"/info/refs", http.StatusFound))
		r.t.Cleanup(elsewhere.Close)
		if status == 401 {
			r.add("http: redirect elsewhere", ErrSource, Options{Location: elsewhere.URL + "/x.git", Auth: remote.Auth{Password: secret}})
		}
	}
	r.add("http: connection refused", ErrSource, Options{Location: "http://" + closed(r.t) + "/x.git"})
	hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	r.t.Cleanup(hangsUp.Close)
	r.add("http: connection closed", ErrSource, Options{Location: hangsUp.URL + "/x.git"})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }))
	r.t.Cleanup(silent.Close)
	ctx, cancel := context.WithTimeout(r.t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Fetch(ctx, Options{Location: silent.URL + "/x.git"})
	r.addError("http: timeout", ErrSource, err)
}

// closed returns an address at which connections are refused.
func closed(t *testing.T) string {
	t.Helper()
	l := gittest.Listen(t)
	l.Close()
	return l.Addr().String()
}

func (r *refusals) addTLS() {
	authority, other := gittest.NewAuthority(r.t), gittest.NewAuthority(r.t)
	trusting := remote.Auth{CABundle: authority.PEM()}
	at := func(server *httptest.Server, auth remote.Auth) Options {
		return Options{Location: server.URL + "/x.git", Auth: auth}
	}
	good := authority.Serve(http.NotFoundHandler(), tls.NoClientCert, gittest.Day, "127.0.0.1")
	r.add("https: unknown authority", ErrSource, at(good, remote.Auth{}))
	r.add("https: other authority", ErrSource, at(good, remote.Auth{CABundle: other.PEM()}))
	r.add("https: other name", ErrSource, at(authority.Serve(http.NotFoundHandler(), tls.NoClientCert, gittest.Day, "git.example.com"), trusting))
	r.add("https: expired", ErrSource, at(authority.Serve(http.NotFoundHandler(), tls.NoClientCert, -time.Hour, "127.0.0.1"), trusting))
	asking := authority.Serve(http.NotFoundHandler(), tls.RequireAndVerifyClientCert, gittest.Day, "127.0.0.1")
	r.add("https: client certificate wanted", ErrSource, at(asking, trusting))
	stranger := trusting
	stranger.ClientCertificate, stranger.ClientKey = other.Pair(gittest.Day, "person")
	r.add("https: client certificate refused", ErrSource, at(asking, stranger))
	var plainlyAsked atomic.Bool
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { plainlyAsked.Store(true) }))
	plain.Config.ErrorLog = gittest.Quiet
	r.t.Cleanup(plain.Close)
	r.add("https: no TLS there", ErrSource, Options{Location: "https://" + plain.Listener.Addr().String() + "/x.git"})
	down := authority.Serve(http.RedirectHandler(plain.URL+"/x.git/info/refs", http.StatusFound), tls.NoClientCert, gittest.Day, "127.0.0.1")
	r.add("https: redirect to http", ErrSource, at(down, trusting))
	if plainlyAsked.Load() {
		r.t.Error("the target of a redirect from https was requested over http")
	}
}

func (r *refusals) addProxies() {
	wanting := gittest.NewProxy(r.t, closed(r.t))
	wanting.Password = secret
	r.add("proxy wants credentials, http", ErrSource, Options{Location: "http://git.example.com/x.git", Proxy: wanting.URL})
	through := func(change func(*gittest.Proxy)) string {
		p := gittest.NewProxy(r.t, closed(r.t))
		change(p)
		return p.URL
	}
	for _, location := range []string{"https://git.example.com/x.git", "git@git.example.com:x.git"} {
		o := Options{Location: location}
		scheme := "https"
		if strings.HasPrefix(location, "git@") {
			scheme = "ssh"
			keys := gittest.SSHKeys(r.t)
			o.Auth = gittest.SSHAuth(r.t, keys, "person", gittest.KnownHosts(r.t, keys, "git.example.com:22", "host"))
		}
		o.Proxy = through(func(p *gittest.Proxy) { p.Status = http.StatusForbidden })
		r.add("proxy refuses, "+scheme, ErrSource, o)
		o.Proxy = through(func(p *gittest.Proxy) { p.Password = secret })
		r.add("proxy wants credentials, "+scheme, ErrSource, o)
		o.Proxy = "http://" + closed(r.t)
		r.add("proxy not there, "+scheme, ErrSource, o)
		o.Proxy = "socks5://" + closed(r.t)
		r.add("proxy by SOCKS not there, "+scheme, ErrSource, o)
		o.Auth.ProxyUsername, o.Auth.ProxyPassword = "x", secret
		o.Proxy = through(func(p *gittest.Proxy) { p.Password = "other" })
		r.add("proxy refuses credentials, "+scheme, ErrSource, o)
	}
}

// socksRefusals adds the errors for a SOCKS proxy that requires a password.
func (r *refusals) socksRefusals() {
	o := Options{Location: "https://git.example.com/x.git", Proxy: "socks5://" + gittest.NewSOCKS(r.t, closed(r.t))}
	r.add("proxy by SOCKS wants credentials, https", ErrSource, o)
	o.Auth.ProxyUsername, o.Auth.ProxyPassword = "x", "other"
	r.add("proxy by SOCKS refuses credentials, https", ErrSource, o)
}

func (r *refusals) addGitHubApps() {
	hub := gittest.NewGitHub(r.t)
	api := httptest.NewServer(hub)
	r.t.Cleanup(api.Close)
	o := Options{Location: "https://git.example.com/x.git", Auth: remote.Auth{GitHubApp: hub.App(api.URL)}}
	nameless := o
	nameless.Location = "https://git.example.com/.git"
	r.add("GitHub App: no name of a repository", ErrOptions, nameless)
	for _, status := range []int{401, 403, 404, 422, 429, 500, 503} {
		hub.Status = status
		r.add(fmt.Sprint("GitHub App: status ", status), ErrSource, o)
	}
	hub.Status, hub.Header = 403, http.Header{"X-Ratelimit-Remaining": {"0"}}
	r.add("GitHub App: limit", ErrSource, o)
	hub.Status, hub.Header = 302, http.Header{"Location": {"https://elsewhere.example.com/"}}
	r.add("GitHub App: redirect", ErrSource, o)
	hub.Status, hub.Header = 0, nil
	for _, body := range []string{"<html>words", `{"token": ""}`, `{"token": "a\nb"}`, `{"token": 1}`} {
		hub.Body = body
		r.add("GitHub App: answer "+body, ErrSource, o)
	}
	hub.Body = ""
	hub.Key = gittest.NewGitHub(r.t).Key
	r.add("GitHub App: another app's key", ErrSource, o)
	api.Close()
	r.add("GitHub App: not there", ErrSource, o)
}

func (r *refusals) addSSH() {
	t := r.t
	keys := gittest.SSHKeys(t, "other", "other_ecdsa", "authority", "stranger", "host_ecdsa")
	repo := newRepository(t)
	repo.Declare("a")
	certified := func(name string, args ...string) *gittest.SSHServer {
		gittest.Keygen(t, append([]string{"-q", "-s", filepath.Join(keys, "authority"), "-I", "x", "-h"}, append(args, filepath.Join(keys, name+".pub"))...)...)
		return repo.ServeSSH(keys, append(gittest.HostKeys(keys, name), "HostCertificate "+filepath.Join(keys, name+"-cert.pub"))...)
	}
	server := repo.ServeSSH(keys, gittest.HostKeys(keys, "host")...)
	expired := certified("host", "-n", "127.0.0.1", "-V", "20200101:20200102")
	misnamed := certified("host_ecdsa", "-n", "git.example.com")
	for _, name := range []string{"host", "host_ecdsa", "other", "authority", "person", "stranger"} {
		public, _, _, _, err := ssh.ParseAuthorizedKey(gittest.MustRead(t, filepath.Join(keys, name+".pub")))
		if err != nil {
			t.Fatal(err)
		}
		r.call(ssh.FingerprintSHA256(public), "SHA256:FINGERPRINT-OF-"+name)
		r.call(strings.Fields(string(gittest.MustRead(t, filepath.Join(keys, name+".pub"))))[1], "KEY-OF-"+name)
	}
	r.call(gittest.Whoami(t), "USER")
	path := filepath.Join(repo.Dir, ".git")
	r.call(path, "/PATH")
	r.call(keys, "KEYS")
	add := func(name string, s *gittest.SSHServer, identity, lines, path string) {
		auth := gittest.SSHAuth(t, keys, identity, lines)
		r.call(filepath.Dir(auth.KnownHosts), "DIR")
		r.add("ssh: "+name, ErrSource, Options{Location: s.URL(path), Auth: auth})
	}
	line := func(s *gittest.SSHServer, names ...string) string {
		return gittest.KnownHosts(t, keys, s.Address(), names...)
	}
	ca := string(gittest.MustRead(t, filepath.Join(keys, "authority.pub")))
	add("unknown host", server, "person", "", path)
	add("host known by another port", server, "person", gittest.KnownHosts(t, keys, "127.0.0.1:2", "host"), path)
	add("changed host key", server, "person", "# x\n"+line(server, "other"), path)
	add("host key of another kind", server, "person", line(server, "other_ecdsa"), path)
	add("revoked host key", server, "person", line(server, "host")+"@revoked * "+string(gittest.MustRead(t, filepath.Join(keys, "host.pub"))), path)
	add("revoked host key that a pattern lists", server, "person", "* "+string(gittest.MustRead(t, filepath.Join(keys, "host.pub")))+
		"@revoked * "+string(gittest.MustRead(t, filepath.Join(keys, "host.pub"))), path)
	add("certificate expired", expired, "person", "@cert-authority * "+ca, path)
	add("certificate of another name", misnamed, "person", "@cert-authority * "+ca, path)
	add("certificate of a revoked authority", misnamed, "person", "@cert-authority * "+ca+"@revoked * "+ca, path)
	add("certificate of another authority", misnamed, "person", "@cert-authority * "+string(gittest.MustRead(t, filepath.Join(keys, "other.pub"))), path)
	add("key refused", server, "stranger", line(server, "host"), path)
	add("not found", server, "person", line(server, "host"), "/nowhere/x.git")
	add("path of a shell", server, "person", line(server, "host"), "/x'; touch '"+filepath.Join(keys, "mark")+"';.git")
	if _, err := os.Stat(filepath.Join(keys, "mark")); err == nil {
		t.Error("the path was obeyed by a shell")
	}
	nobody := &gittest.SSHServer{T: t, Listener: gittest.Listen(t)}
	nobody.Listener.Close()
	add("connection refused", nobody, "person", line(nobody, "host"), path)
	r.addHostile(keys, "no ssh there", "HTTP/1.1 400 Bad Request\r\n\r\n\x1b[31mthe server's words")
	r.addHostile(keys, "connection closed", "")
	for name, c := range map[string]func(ssh.Channel) uint32{
		"no git there": func(ssh.Channel) uint32 { return 127 },
		"refused by the program": func(c ssh.Channel) uint32 {
			_, _ = io.WriteString(c.Stderr(), "\x1b[31mthe server's words\n")
			return 1
		},
		"not found, says the host": func(c ssh.Channel) uint32 {
			_, _ = io.WriteString(c.Stderr(), "ERROR: Repository not found.\n")
			return 1
		},
		"not found, says git": func(c ssh.Channel) uint32 {
			_, _ = io.WriteString(c, "0025ERR Repository not found, my words")
			return 0
		},
		"nothing said":     func(ssh.Channel) uint32 { return 0 },
		"garbled":          func(c ssh.Channel) uint32 { _, _ = io.WriteString(c, "zzzz\x1b[31mthe server's words"); return 0 },
		"empty repository": func(c ssh.Channel) uint32 { _, _ = io.WriteString(c, "0000"); return 0 },
		"endless": func(c ssh.Channel) uint32 {
			for line := strings.Repeat("a", 40) + " HEAD\x00shallow\n"; ; line = strings.Repeat("b", 40) + " refs/heads/" + strings.Repeat("x", 60000) + "\n" {
				if _, err := fmt.Fprintf(c, "%04x%s", len(line)+4, line); err != nil {
					return 1
				}
			}
		},
	} {
		hostile := gittest.ServeFakeSSH(t, keys, c)
		auth := gittest.SSHAuth(t, keys, "person", gittest.KnownHosts(t, keys, hostile, "host"))
		r.add("ssh: "+name, ErrSource, Options{Location: "ssh://git@" + hostile + "/x.git", Auth: auth})
	}
	auth := gittest.SSHAuth(t, keys, "person", "")
	auth.KnownHosts = ""
	r.add("ssh: identity alone", ErrOptions, Options{Location: "git@git.example.com:x.git", Auth: auth})
	r.add("ssh: nothing", ErrOptions, Options{Location: "git@git.example.com:x.git"})
	r.add("ssh: token", ErrOptions, Options{Location: "git@git.example.com:x.git", Auth: remote.Auth{BearerToken: secret}})
	good := gittest.SSHAuth(t, keys, "person", line(server, "host"))
	r.add("ssh: identity for https", ErrOptions, Options{Location: "https://git.example.com/x.git", Auth: good})
	broken := good
	broken.KnownHosts = gittest.MustWrite(t, filepath.Join(t.TempDir(), "known_hosts"), "git.example.com ssh-ed25519 !!!\n")
	r.call(filepath.Dir(broken.KnownHosts), "DIR")
	r.add("ssh: known_hosts garbled", ErrOptions, Options{Location: "git@git.example.com:x.git", Auth: broken})
	broken = good
	broken.Identity = []byte("x")
	r.add("ssh: identity garbled", ErrOptions, Options{Location: "git@git.example.com:x.git", Auth: broken})
	gittest.Keygen(t, "-q", "-p", "-a", "1", "-P", "", "-N", "open sesame", "-f", filepath.Join(keys, "person"))
	locked := gittest.SSHAuth(t, keys, "person", line(server, "host"))
	r.add("ssh: passphrase missing", ErrOptions, Options{Location: "git@git.example.com:x.git", Auth: locked})
	locked.Passphrase = secret
	r.add("ssh: passphrase wrong", ErrOptions, Options{Location: "git@git.example.com:x.git", Auth: locked})
}

// addHostile adds the error for a server that sends the bytes of says and closes the connection.
func (r *refusals) addHostile(keys, name, says string) {
	l := gittest.Listen(r.t)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = c.Write([]byte(says))
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = c.Read(make([]byte, 1<<10))
			c.Close()
		}
	}()
	auth := gittest.SSHAuth(r.t, keys, "person", gittest.KnownHosts(r.t, keys, l.Addr().String(), "host"))
	r.add("ssh: "+name, ErrSource, Options{Location: "ssh://git@" + l.Addr().String() + "/x.git", Auth: auth})
}
