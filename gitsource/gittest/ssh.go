package gittest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"quorate.dev/quorate/gitsource/remote"
)

// Program finds a program in PATH, in /usr/sbin, or in the directory of the test tools. If the program is missing, the
// test is skipped, or fails in CI.
func Program(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range []string{"", "/usr/sbin/", os.Getenv("QUORATE_TOOLS") + "/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", name)
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// SSHServer serves a repository with OpenSSH's sshd and git's own server. It starts an sshd process for each
// connection.
type SSHServer struct {
	T        testing.TB
	Listener net.Listener
	dir      string
	log      lockedBuffer
}

type lockedBuffer struct {
	lock sync.Mutex
	b    bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.b.String()
}

// SSHKeys creates keys with ssh-keygen: the keys host and person, and keys with the given names. The suffix of a name,
// after an underscore, is the key type. The default is ed25519. The server accepts keys whose names begin with person.
func SSHKeys(t testing.TB, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var authorized []byte
	for _, name := range append([]string{"host", "person"}, names...) {
		_, kind, _ := strings.Cut(name, "_")
		if kind == "" {
			kind = "ed25519"
		}
		args := []string{"-q", "-t", kind, "-N", "", "-C", name, "-f", filepath.Join(dir, name)}
		if kind == "rsa" {
			args = append(args, "-b", "2048") // larger keys take too long to generate
		}
		Keygen(t, args...)
		if strings.HasPrefix(name, "person") {
			authorized = append(authorized, MustRead(t, filepath.Join(dir, name+".pub"))...)
		}
	}
	MustWrite(t, filepath.Join(dir, "authorized_keys"), string(authorized))
	return dir
}

// Keygen runs ssh-keygen.
func Keygen(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Program(t, "ssh-keygen"), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// MustRead returns the content of a file.
func MustRead(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// MustWrite writes a file and returns its name.
func MustWrite(t testing.TB, file, content string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// ServeSSH serves the repository over ssh, with its parent directory as the working directory. settings are lines of
// sshd_config, such as the host keys.
func (r *Repository) ServeSSH(keys string, settings ...string) *SSHServer {
	t := r.T
	t.Helper()
	sshd := Program(t, "sshd")
	if os.Getuid() == 0 {
		// sshd requires this directory. The systemd unit that usually creates it does not run here.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := &SSHServer{T: t, dir: t.TempDir()}
	script := MustWrite(t, filepath.Join(s.dir, "serve"), fmt.Sprintf(
		"#!/bin/sh\nHOME=%s PATH=%s:%s GIT_CONFIG_NOSYSTEM=1\nexport HOME PATH GIT_CONFIG_NOSYSTEM\ncd %s\nexec "+
			"git-shell -c \"$SSH_ORIGINAL_COMMAND\"\n",
		r.Dir, r.Git("--exec-path"), os.Getenv("PATH"), filepath.Dir(r.Dir)))
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	config := MustWrite(t, filepath.Join(s.dir, "sshd_config"), strings.Join(append([]string{
		"AuthorizedKeysFile " + filepath.Join(keys, "authorized_keys"), "ForceCommand " + script, "StrictModes no",
		"UsePAM no", "PidFile none",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "LogLevel VERBOSE",
	}, settings...), "\n")+"\n")
	s.Listener = Listen(t)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			connection, err := s.Listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.serve(sshd, config, connection.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		s.Listener.Close()
		running.Wait()
		if t.Failed() {
			t.Logf("log of sshd:\n%s", s.log.String())
		}
	})
	return s
}

func (s *SSHServer) serve(sshd, config string, connection *net.TCPConn) {
	file, err := connection.File()
	connection.Close()
	if err != nil {
		fmt.Fprintln(&s.log, err)
		return
	}
	defer file.Close()
	cmd := exec.CommandContext(s.T.Context(), sshd, "-i", "-e", "-f", config)
	cmd.WaitDelay = time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, file, &s.log
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(&s.log, err)
	}
}

// Listen listens on loopback until the test ends.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// HostKeys returns the sshd settings for host keys.
func HostKeys(keys string, names ...string) []string {
	var settings []string
	for _, name := range names {
		settings = append(settings, "HostKey "+filepath.Join(keys, name))
	}
	return settings
}

// Address returns the server's address.
func (s *SSHServer) Address() string { return s.Listener.Addr().String() }

// URL returns the URL of a path on the server.
func (s *SSHServer) URL(path string) string {
	return "ssh://" + Whoami(s.T) + "@" + s.Address() + path
}

// Whoami returns the name of the user that runs the test.
func Whoami(t testing.TB) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return me.Username
}

// KnownHosts returns known_hosts lines with the named keys for the server at address.
func KnownHosts(t testing.TB, keys, address string, names ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	if port != "22" {
		host = "[" + host + "]:" + port
	}
	var lines strings.Builder
	for _, name := range names {
		fmt.Fprintf(&lines, "%s %s", host, MustRead(t, filepath.Join(keys, name+".pub")))
	}
	return lines.String()
}

// SSHAuth returns credentials with one key and a known_hosts file with the given lines.
func SSHAuth(t testing.TB, keys, identity, lines string) remote.Auth {
	t.Helper()
	return remote.Auth{
		Identity:   MustRead(t, filepath.Join(keys, identity)),
		KnownHosts: MustWrite(t, filepath.Join(t.TempDir(), "known_hosts"), lines),
	}
}

// ServeFakeSSH starts an ssh server that accepts every client and passes every command to answer, which returns the
// exit status.
func ServeFakeSSH(t testing.TB, keys string, answer func(ssh.Channel) uint32) (address string) {
	t.Helper()
	key, err := ssh.ParsePrivateKey(MustRead(t, filepath.Join(keys, "host")))
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(key)
	l := Listen(t)
	go func() {
		for {
			connection, err := l.Accept()
			if err != nil {
				return
			}
			go fakeConnection(connection, config, answer)
		}
	}()
	return l.Addr().String()
}

func fakeConnection(connection net.Conn, config *ssh.ServerConfig, answer func(ssh.Channel) uint32) {
	defer connection.Close()
	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			if err := request.Reply(request.Type == "exec", nil); err != nil {
				return
			}
			status := answer(channel)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			channel.Close()
		}
	}
}
