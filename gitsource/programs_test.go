package gitsource

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/remote"
)

// fetchElsewhere fetches in a separate process with its own environment, and returns the result.
func fetchElsewhere(t *testing.T, o Options, environment ...string) string {
	t.Helper()
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperFetch$")
	cmd.Env = append(environment, "QUORATE_TEST_OPTIONS="+string(encoded), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, found, _ := strings.Cut(string(out), "found: ")
	found, _, _ = strings.Cut(found, "\n")
	return found
}

// TestHelperFetch is run by fetchElsewhere. On its own, it does nothing.
func TestHelperFetch(t *testing.T) {
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

func TestEnvironmentProxiesAreUsed(t *testing.T) {
	r := newRepository(t)
	r.Declare("a")
	authority := gittest.NewAuthority(t)
	server := authority.Serve(r.Handler(), tls.NoClientCert, gittest.Day, "git.example.com")
	through := gittest.NewProxy(t, server.Listener.Addr().String())
	o := Options{Location: "https://git.example.com/.git", Auth: remote.Auth{CABundle: authority.PEM()}}
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

// TestFetchRunsNoProgram checks that fetching does not run programs, contact an agent or read the home directory, even
// if the configuration requests it.
func TestFetchRunsNoProgram(t *testing.T) {
	keys := gittest.SSHKeys(t)
	r := newRepository(t)
	r.Declare("a")
	authority := gittest.NewAuthority(t)
	https := authority.Serve(r.Handler(), tls.NoClientCert, gittest.Day, "127.0.0.1")
	host := r.ServeSSH(keys, gittest.HostKeys(keys, "host")...)
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
	gittest.MustWrite(t, filepath.Join(home, ".ssh", "config"), "Host *\nHostname 127.0.0.2\nPort 1\nProxyCommand "+filepath.Join(programs, "ssh")+"\n")
	gittest.MustWrite(t, filepath.Join(home, ".gitconfig"), "[core]\nsshCommand = ssh\n[credential]\nhelper = x\n[url \"https://127.0.0.1:1/\"]\ninsteadOf = ssh://\n")
	environment := []string{"PATH=" + programs, "HOME=" + home, "SSH_AUTH_SOCK=" + agent.Addr().String(), "SHELL=" + programs + "/sh",
		"GIT_SSH=" + programs + "/ssh", "GIT_SSH_COMMAND=" + programs + "/ssh", "GIT_ASKPASS=" + programs + "/git-credential-x",
		"SSH_ASKPASS=" + programs + "/ssh-add", "SSH_KNOWN_HOSTS=" + gittest.MustWrite(t, filepath.Join(home, "known_hosts"), gittest.KnownHosts(t, keys, host.Address(), "host"))}
	path := filepath.Join(r.Dir, ".git")
	for _, o := range []Options{
		{Location: r.Dir},
		{Location: https.URL + "/.git", Auth: remote.Auth{CABundle: authority.PEM()}},
		{Location: host.URL(path), Auth: gittest.SSHAuth(t, keys, "person", gittest.KnownHosts(t, keys, host.Address(), "host"))},
	} {
		if found := fetchElsewhere(t, o, environment...); found != "a" {
			t.Errorf("%s: found %s", o.Location, found)
		}
	}
	// A host key that is listed only in the home directory is not trusted.
	if found := fetchElsewhere(t, Options{Location: host.URL(path), Auth: gittest.SSHAuth(t, keys, "person", "")}, environment...); !strings.Contains(found, "ask its administrators") {
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
	// Check that running one of the planted programs leaves a mark.
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "git"))
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(marks); err != nil || len(left) != 1 {
		t.Errorf("the program left no mark: %v, %v", left, err)
	}
}
