package gitsource

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"quorate.dev/quorate/gitsource/remote"
)

// program finds a program in PATH, beside the other servers of the system, or where the tools of
// the tests are. CI has them all.
func program(t testing.TB, name string) string {
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

// sshServer is OpenSSH's own, with git's own behind it. It serves each connection by a process of
// its own, which the test starts.
type sshServer struct {
	t      testing.TB
	dir    string
	listen net.Listener
	log    lockedBuffer
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

// sshKeys makes keys by ssh-keygen: of a host, of a person, and those named, of the kind that the
// name ends in, or else ed25519. The host lets in whoever is named person.
func sshKeys(t testing.TB, names ...string) (dir string) {
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
			args = append(args, "-b", "2048") // those with more take long to find
		}
		keygen(t, args...)
		if strings.HasPrefix(name, "person") {
			authorized = append(authorized, mustRead(t, filepath.Join(dir, name+".pub"))...)
		}
	}
	mustWrite(t, filepath.Join(dir, "authorized_keys"), string(authorized))
	return dir
}

func keygen(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "ssh-keygen"), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

func mustRead(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func mustWrite(t testing.TB, file, content string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serveSSH serves what is in the directory of the repository. Keys and certificates of the host are
// those given.
func (r *repository) serveSSH(keys string, settings ...string) *sshServer {
	t := r.t
	t.Helper()
	sshd := program(t, "sshd")
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd wants it, and the unit that makes it does not run here
			t.Fatal(err)
		}
	}
	s := &sshServer{t: t, dir: t.TempDir()}
	script := mustWrite(t, filepath.Join(s.dir, "serve"), fmt.Sprintf(
		"#!/bin/sh\nHOME=%s PATH=%s:%s GIT_CONFIG_NOSYSTEM=1\nexport HOME PATH GIT_CONFIG_NOSYSTEM\ncd %s\nexec git-shell -c \"$SSH_ORIGINAL_COMMAND\"\n",
		r.dir, r.git("--exec-path"), os.Getenv("PATH"), filepath.Dir(r.dir)))
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	config := mustWrite(t, filepath.Join(s.dir, "sshd_config"), strings.Join(append([]string{
		"AuthorizedKeysFile " + filepath.Join(keys, "authorized_keys"), "ForceCommand " + script, "StrictModes no", "UsePAM no", "PidFile none",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "LogLevel VERBOSE",
	}, settings...), "\n")+"\n")
	s.listen = listen(t)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			connection, err := s.listen.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.serve(sshd, config, connection.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		s.listen.Close()
		running.Wait()
		if t.Failed() {
			t.Logf("sshd says:\n%s", s.log.String())
		}
	})
	return s
}

func (s *sshServer) serve(sshd, config string, connection *net.TCPConn) {
	file, err := connection.File()
	connection.Close()
	if err != nil {
		fmt.Fprintln(&s.log, err)
		return
	}
	defer file.Close()
	cmd := exec.CommandContext(s.t.Context(), sshd, "-i", "-e", "-f", config)
	cmd.WaitDelay = time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, file, &s.log
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(&s.log, err)
	}
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// hostKeys are settings of sshd.
func hostKeys(keys string, names ...string) []string {
	var settings []string
	for _, name := range names {
		settings = append(settings, "HostKey "+filepath.Join(keys, name))
	}
	return settings
}

func (s *sshServer) address() string { return s.listen.Addr().String() }

// url of a path there.
func (s *sshServer) url(path string) string {
	return "ssh://" + whoami(s.t) + "@" + s.address() + path
}

func whoami(t testing.TB) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return me.Username
}

// known is a line of known_hosts for a server at that address.
func known(t testing.TB, keys, address string, names ...string) string {
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
		fmt.Fprintf(&lines, "%s %s", host, mustRead(t, filepath.Join(keys, name+".pub")))
	}
	return lines.String()
}

// sshAuth shows one key, and trusts what the lines say.
func sshAuth(t testing.TB, keys, identity, lines string) remote.Auth {
	t.Helper()
	return remote.Auth{
		Identity:   mustRead(t, filepath.Join(keys, identity)),
		KnownHosts: mustWrite(t, filepath.Join(t.TempDir(), "known_hosts"), lines),
	}
}

// authority certifies servers and people for TLS.
type authority struct {
	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t}
	a.certificate, a.key = a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
	})
	return a
}

func (a *authority) make(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate, key
}

// pair certifies for names, until a time from now.
func (a *authority) pair(holds time.Duration, names ...string) (certificate, key []byte) {
	a.t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "x"}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(holds),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	c, k := a.make(template)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// serve serves over TLS with a certificate for names that holds for a time. It may ask people for
// certificates.
func (a *authority) serve(handler http.Handler, people tls.ClientAuthType, holds time.Duration, names ...string) *httptest.Server {
	a.t.Helper()
	pair, err := tls.X509KeyPair(a.pair(holds, names...))
	if err != nil {
		a.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: people, ClientCAs: a.pool()}
	server.Config.ErrorLog = quiet
	server.StartTLS()
	a.t.Cleanup(server.Close)
	return server
}

// proxy is one for HTTP, which leads any host to where it is told.
type proxy struct {
	*httptest.Server
	asked atomic.Int32
	// words it answers with; status it refuses with.
	password string
	status   int
	to       string
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	p := &proxy{to: to}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	p.asked.Add(1)
	given := &http.Request{Header: http.Header{"Authorization": request.Header["Proxy-Authorization"]}}
	if _, password, _ := given.BasicAuth(); password != p.password {
		http.Error(w, "\x1b[31mthe proxy's words", http.StatusProxyAuthRequired)
		return
	}
	if p.status != 0 {
		http.Error(w, "\x1b[31mthe proxy's words", p.status)
		return
	}
	there, err := net.Dial("tcp", p.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	pipe(here, there, buffered.Reader)
}

// pipe joins two connections until one of them ends.
func pipe(here, there net.Conn, buffered *bufio.Reader) {
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(there, buffered); done <- struct{}{} }()
	go func() { _, _ = io.Copy(here, there); done <- struct{}{} }()
	<-done
}

// serveFake is an ssh server that lets anyone in and answers every command with what a function
// does, which returns the status that it ends with.
func serveFake(t testing.TB, keys string, answer func(ssh.Channel) uint32) (address string) {
	t.Helper()
	key, err := ssh.ParsePrivateKey(mustRead(t, filepath.Join(keys, "host")))
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(key)
	l := listen(t)
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

// newSOCKS is a proxy by SOCKS 5, which wants a password and leads any host to where it is told.
func newSOCKS(t *testing.T, to string) (address string) {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer here.Close()
				if err := socks(here, to); err != nil {
					t.Logf("SOCKS: %v", err)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func socks(here net.Conn, to string) error {
	r := bufio.NewReader(here)
	read := func(n int) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return make([]byte, n)
		}
		return b
	}
	if methods := read(int(read(2)[1])); !bytes.Contains(methods, []byte{2}) {
		_, err := here.Write([]byte{5, 0xff})
		return err
	}
	if _, err := here.Write([]byte{5, 2}); err != nil {
		return err
	}
	name := read(int(read(2)[1]))
	password := read(int(read(1)[0]))
	if string(name) != "x" || string(password) != secret {
		_, err := here.Write([]byte{1, 1})
		return err
	}
	if _, err := here.Write([]byte{1, 0}); err != nil {
		return err
	}
	if kind := read(4)[3]; kind != 3 {
		return fmt.Errorf("address of kind %d, want a name", kind)
	}
	read(int(read(1)[0]) + 2)
	there, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer there.Close()
	if _, err := here.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	pipe(here, there, r)
	return nil
}
