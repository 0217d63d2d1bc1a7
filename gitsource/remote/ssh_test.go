package remote_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/remote"
)

// TestSSHKeysAndKnownHosts covers user keys and the entries that known_hosts may have for a host.
func TestSSHKeysAndKnownHosts(t *testing.T) {
	keys := gittest.SSHKeys(t, "host_ecdsa", "host_rsa", "other", "authority", "person_rsa")
	r := gittest.NewRepository(t)
	r.Declare("a")
	gittest.Keygen(t, "-q", "-s", filepath.Join(keys, "authority"), "-I", "x", "-h", "-n", "127.0.0.1", filepath.Join(keys, "host_rsa.pub"))
	server := r.ServeSSH(keys, append(gittest.HostKeys(keys, "host", "host_ecdsa", "host_rsa"),
		"HostCertificate "+filepath.Join(keys, "host_rsa-cert.pub"))...)
	line := func(names ...string) string { return gittest.KnownHosts(t, keys, server.Address(), names...) }
	everywhere := "* " + string(gittest.MustRead(t, filepath.Join(keys, "host_rsa.pub")))
	authority := "@cert-authority * " + string(gittest.MustRead(t, filepath.Join(keys, "authority.pub")))
	fetch := func(name string, auth remote.Auth) {
		t.Run(name, func(t *testing.T) {
			wantFetched(t, remote.Repository{URL: server.URL(filepath.Join(r.Dir, ".git")), Auth: auth})
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
		"other's word": "@revoked * " + string(gittest.MustRead(t, filepath.Join(keys, "other.pub"))) + line("host"),
	} {
		fetch(name, gittest.SSHAuth(t, keys, "person", lines))
	}
	hashed := gittest.SSHAuth(t, keys, "person", line("host"))
	gittest.Keygen(t, "-q", "-H", "-f", hashed.KnownHosts)
	if strings.Contains(string(gittest.MustRead(t, hashed.KnownHosts)), "127.0.0.1") {
		t.Error("the host is not hashed")
	}
	fetch("hashed", hashed)

	fetch("key of a person with RSA", gittest.SSHAuth(t, keys, "person_rsa", line("host")))
	gittest.Keygen(t, "-q", "-p", "-a", "1", "-P", "", "-N", secret, "-f", filepath.Join(keys, "person"))
	locked := gittest.SSHAuth(t, keys, "person", line("host"))
	locked.Passphrase = secret
	fetch("passphrase", locked)
	locked.Passphrase, locked.Password = "", secret
	fetch("passphrase as password", locked)
	named := locked
	named.Username = gittest.Whoami(t)
	t.Run("user named apart", func(t *testing.T) {
		wantFetched(t, remote.Repository{URL: "ssh://" + server.Address() + filepath.Join(r.Dir, ".git"), Auth: named})
	})
}

// TestSSHThroughProxies covers proxies, and addresses of the form user@host:path. Such addresses do not have a port,
// and the path is relative to the login directory.
func TestSSHThroughProxies(t *testing.T) {
	keys := gittest.SSHKeys(t)
	r := gittest.NewRepository(t)
	r.Declare("a")
	server := r.ServeSSH(keys, gittest.HostKeys(keys, "host")...)
	auth := gittest.SSHAuth(t, keys, "person", "git.example.com "+string(gittest.MustRead(t, filepath.Join(keys, "host.pub"))))
	through := gittest.NewProxy(t, server.Address())
	through.Password = secret
	auth.ProxyUsername, auth.ProxyPassword = "x", secret
	at := gittest.Whoami(t) + "@git.example.com:" + filepath.Join(r.Dir, ".git")
	wantFetched(t, remote.Repository{URL: at, Auth: auth, Proxy: "socks5://" + gittest.NewSOCKS(t, server.Address())})
	for _, location := range []string{
		gittest.Whoami(t) + "@git.example.com:" + filepath.Join(filepath.Base(r.Dir), ".git"),
		gittest.Whoami(t) + "@GIT.example.com:" + filepath.Join(r.Dir, ".git"),
		gittest.Whoami(t) + "@[git.example.com:22]:" + filepath.Join(r.Dir, ".git"),
		"ssh://" + gittest.Whoami(t) + "@git.example.com:22" + filepath.Join(r.Dir, ".git"),
	} {
		wantFetched(t, remote.Repository{URL: location, Auth: auth, Proxy: through.URL})
	}
	if through.Asked.Load() == 0 {
		t.Error("nothing went through the proxy")
	}
}

// TestSSHSessionIsReused checks that a session can be used for any number of requests.
func TestSSHSessionIsReused(t *testing.T) {
	keys := gittest.SSHKeys(t)
	r, commits := gittest.Revisions(t)
	server := r.ServeSSH(keys, gittest.HostKeys(keys, "host")...)
	session, err := remote.Open(t.Context(), remote.Repository{
		URL: server.URL(filepath.Join(r.Dir, ".git")), Auth: gittest.SSHAuth(t, keys, "person", gittest.KnownHosts(t, keys, server.Address(), "host"))})
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

// TestSilentSSHServerIsAbandoned checks that fetching from a host that stops responding at any point ends when the
// context ends.
func TestSilentSSHServerIsAbandoned(t *testing.T) {
	keys := gittest.SSHKeys(t)
	r := gittest.NewRepository(t)
	r.Declare("a")
	server := r.ServeSSH(keys, gittest.HostKeys(keys, "host")...)
	// passes is the number of bytes from the host that are passed on. The connection stalls at the greeting, during the
	// key exchange, or before the references.
	for _, passes := range []int{0, 10, 1500, 2400} {
		silent := gittest.Listen(t)
		fell := make(chan struct{})
		go func() {
			here, err := silent.Accept()
			if err != nil {
				return
			}
			defer here.Close()
			there, err := net.Dial("tcp", server.Address())
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
		location := strings.Replace(server.URL(filepath.Join(r.Dir, ".git")), server.Address(), silent.Addr().String(), 1)
		err := fetch(ctx, remote.Repository{URL: location,
			Auth: gittest.SSHAuth(t, keys, "person", gittest.KnownHosts(t, keys, silent.Addr().String(), "host"))})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after %d bytes: error %v", passes, err)
		}
	}
}
