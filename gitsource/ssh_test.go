package gitsource

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"quorate.dev/quorate/gitsource/remote"
)

var quiet = log.New(io.Discard, "", 0)

// Keys of people, and whatever known_hosts may say of a host.
func TestSSH(t *testing.T) {
	keys := sshKeys(t, "host_ecdsa", "host_rsa", "other", "authority", "person_rsa")
	r := newRepository(t)
	r.declare("a")
	keygen(t, "-q", "-s", filepath.Join(keys, "authority"), "-I", "x", "-h", "-n", "127.0.0.1", filepath.Join(keys, "host_rsa.pub"))
	server := r.serveSSH(keys, append(hostKeys(keys, "host", "host_ecdsa", "host_rsa"),
		"HostCertificate "+filepath.Join(keys, "host_rsa-cert.pub"))...)
	line := func(names ...string) string { return known(t, keys, server.address(), names...) }
	everywhere := "* " + string(mustRead(t, filepath.Join(keys, "host_rsa.pub")))
	authority := "@cert-authority * " + string(mustRead(t, filepath.Join(keys, "authority.pub")))
	fetch := func(name string, auth remote.Auth) {
		t.Run(name, func(t *testing.T) {
			desired, err := Fetch(t.Context(), Options{Location: server.url(filepath.Join(r.dir, ".git")), Auth: auth})
			if err != nil {
				t.Fatal(err)
			}
			wantClusters(t, desired, "a")
		})
	}
	for name, lines := range map[string]string{
		"ed25519": line("host"), "ecdsa": line("host_ecdsa"), "rsa": line("host_rsa"),
		"several":      line("host_rsa", "host", "host_ecdsa"),
		"old and new":  line("other", "host"),
		"comment":      "# x\n\n" + line("host_ecdsa"),
		"pattern":      everywhere,
		"authority":    authority,
		"all":          authority + line("host") + everywhere,
		"other's word": "@revoked * " + string(mustRead(t, filepath.Join(keys, "other.pub"))) + line("host"),
	} {
		fetch(name, sshAuth(t, keys, "person", lines))
	}
	hashed := sshAuth(t, keys, "person", line("host"))
	keygen(t, "-q", "-H", "-f", hashed.KnownHosts)
	if strings.Contains(string(mustRead(t, hashed.KnownHosts)), "127.0.0.1") {
		t.Error("the host is not hashed")
	}
	fetch("hashed", hashed)

	fetch("key of a person with RSA", sshAuth(t, keys, "person_rsa", line("host")))
	keygen(t, "-q", "-p", "-a", "1", "-P", "", "-N", secret, "-f", filepath.Join(keys, "person"))
	locked := sshAuth(t, keys, "person", line("host"))
	locked.Passphrase = secret
	fetch("passphrase", locked)
	locked.Passphrase, locked.Password = "", secret
	fetch("passphrase as password", locked)
	named := locked
	named.Username = whoami(t)
	t.Run("user named apart", func(t *testing.T) {
		desired, err := Fetch(t.Context(), Options{Location: "ssh://" + server.address() + filepath.Join(r.dir, ".git"), Auth: named})
		if err != nil {
			t.Fatal(err)
		}
		wantClusters(t, desired, "a")
	})
}

// user@host:path, which has no port, and a path from where the host begins; and a proxy to get
// there.
func TestSSHThroughProxies(t *testing.T) {
	keys := sshKeys(t)
	r := newRepository(t)
	r.declare("a")
	server := r.serveSSH(keys, hostKeys(keys, "host")...)
	auth := sshAuth(t, keys, "person", "git.example.com "+string(mustRead(t, filepath.Join(keys, "host.pub"))))
	through := newProxy(t, server.address())
	through.password = secret
	auth.ProxyUsername, auth.ProxyPassword = "x", secret
	at := whoami(t) + "@git.example.com:" + filepath.Join(r.dir, ".git")
	desired, err := Fetch(t.Context(), Options{Location: at, Auth: auth, Proxy: "socks5://" + newSOCKS(t, server.address())})
	if err != nil {
		t.Fatal(err)
	}
	wantClusters(t, desired, "a")
	for _, location := range []string{
		whoami(t) + "@git.example.com:" + filepath.Join(filepath.Base(r.dir), ".git"),
		whoami(t) + "@GIT.example.com:" + filepath.Join(r.dir, ".git"),
		whoami(t) + "@[git.example.com:22]:" + filepath.Join(r.dir, ".git"),
		"ssh://" + whoami(t) + "@git.example.com:22" + filepath.Join(r.dir, ".git"),
	} {
		desired, err := Fetch(t.Context(), Options{Location: location, Auth: auth, Proxy: through.URL})
		if err != nil {
			t.Fatalf("%s: %v", location, err)
		}
		wantClusters(t, desired, "a")
	}
	if through.asked.Load() == 0 {
		t.Error("nothing went through the proxy")
	}
}

// A session answers as often as it is asked.
func TestSSHSessionIsAskedAgain(t *testing.T) {
	keys := sshKeys(t)
	r, commits := revisions(t)
	server := r.serveSSH(keys, hostKeys(keys, "host")...)
	session, err := remote.Open(t.Context(), remote.Repository{
		URL: server.url(filepath.Join(r.dir, ".git")), Auth: sshAuth(t, keys, "person", known(t, keys, server.address(), "host"))})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, name := range []string{"main", "feature", "main"} {
		store, err := session.Fetch(t.Context(), plumbing.NewHash(commits[name]))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.HasEncodedObject(plumbing.NewHash(commits[name])); err != nil {
			t.Errorf("%s was not fetched: %v", name, err)
		}
		store.Close()
	}
}

// A host that falls silent, at whatever moment, is waited for until the context ends, not longer.
func TestSilentSSHServer(t *testing.T) {
	keys := sshKeys(t)
	r := newRepository(t)
	r.declare("a")
	server := r.serveSSH(keys, hostKeys(keys, "host")...)
	// How much of what the host sends passes: its greeting; the exchange of keys; all but the
	// references.
	for _, passes := range []int{0, 10, 1500, 2400} {
		silent := listen(t)
		fell := make(chan struct{})
		go func() {
			here, err := silent.Accept()
			if err != nil {
				return
			}
			defer here.Close()
			there, err := net.Dial("tcp", server.address())
			if err != nil {
				return
			}
			defer there.Close()
			go func() { _, _ = io.Copy(there, here); there.Close() }()
			_, _ = io.CopyN(here, there, int64(passes))
			close(fell)
			_, _ = io.Copy(io.Discard, there)
		}()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-fell; cancel() }()
		location := strings.Replace(server.url(filepath.Join(r.dir, ".git")), server.address(), silent.Addr().String(), 1)
		_, err := Fetch(ctx, Options{Location: location,
			Auth: sshAuth(t, keys, "person", known(t, keys, silent.Addr().String(), "host"))})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrSource) {
			t.Errorf("after %d bytes: error %v", passes, err)
		}
	}
}
