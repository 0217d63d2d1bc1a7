package main

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/internal/procgroup"
	"quorate.dev/quorate/internal/procgroup/procgrouptest"
)

// TestBackupOfMemberWithoutKubernetes checks that a real etcd can be backed up without Kubernetes.
func TestBackupOfMemberWithoutKubernetes(t *testing.T) {
	t.Parallel()
	etcds, err := filepath.Glob(filepath.Join(os.Getenv("QUORATE_ETCD_DIR"), "etcd-*", "etcd"))
	if os.Getenv("QUORATE_ETCD_DIR") == "" || err != nil || len(etcds) == 0 {
		t.Skip("QUORATE_ETCD_DIR does not name a directory with etcd-<version>/etcd; make test sets it")
	}
	files := newPairs(t, "a-0.a.ns.svc")
	url := startTLS(t, etcds[len(etcds)-1], files)
	dir := t.TempDir()
	command := func(file, cluster, ca string, others ...string) (int, string) {
		var out bytes.Buffer
		args := []string{"backup", cluster, "--to", filepath.Join(dir, file), "--member", "a-0=" + url,
			"--cacert", filepath.Join(files, ca), "--cert", filepath.Join(files, "client.crt"), "--key", filepath.Join(files, "client.key")}
		code := execute(t.Context(), append(args, others...), streams{out: &out, err: &out})
		return code, out.String()
	}
	deadline := time.Now().Add(time.Minute)
	code, said := command("a.db", "ns/a", "ca.crt")
	for code != exitOK && time.Now().Before(deadline) { // etcd is starting
		code, said = command("a.db", "ns/a", "ca.crt")
	}
	if code != exitOK || !strings.Contains(said, "the same data as a-0") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	code, said = command("e.db", "ns/a", "ca.crt", "--member", "a-1=https://127.0.0.1:1", "--member", "a-2=https://127.0.0.1:2")
	if code == exitOK || !strings.Contains(strings.Join(strings.Fields(said), " "), "a-0 returned it, but the expected voters a-1 and a-2 did not") {
		t.Errorf("a member that does not list the other named members: exit code %d: %s", code, said)
	}
	// A member is accepted only if its certificate is for the named cluster and is signed by the given CA.
	for _, c := range []struct{ file, cluster, ca, want string }{
		{"b.db", "ns/b", "ca.crt", "a-0.b.ns.svc"},
		{"c.db", "ns/a", "other.crt", "unknown authority"},
		{"d.db", "ns/a", "missing.crt", "--cacert: "},
	} {
		code, said := command(c.file, c.cluster, c.ca)
		if _, err := os.Stat(filepath.Join(dir, c.file)); code == exitOK || err == nil || !strings.Contains(strings.Join(strings.Fields(said), " "), c.want) {
			t.Errorf("exit code %d: %s", code, said)
		}
	}
}

// TestMemberFlags checks that invalid members are rejected before any connection is made.
func TestMemberFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--member a-0":                                             `--member "a-0": expected NAME=https://HOST:2379`,
		"--member a-0=10.0.0.1:2379":                               `--member "a-0=10.0.0.1:2379": expected NAME=https://HOST:2379`,
		"--member a-0=https://me:secret@h":                         `--member "a-0=…@h": expected NAME=https://HOST:2379`,
		"--member https://me:secret@h":                             `--member "…@h": expected NAME=https://HOST:2379`,
		"--member a-0=https://me:se@cret@h?x=secret":               `--member "a-0=…@h?…": expected NAME=https://HOST:2379`,
		"--member a-0=https://h#secret":                            `--member "a-0=https://h#…": expected NAME=https://HOST:2379`,
		"--member a-0=https://h/x":                                 `--member "a-0=https://h/x": expected NAME=https://HOST:2379`,
		"--member A=https://h":                                     `--member "A=https://h": expected NAME=https://HOST:2379`,
		"--member a-0=http://h --member a-1=http://h:2379":         "has the address h:2379 twice",
		"--member a-0=http://h --member a-0=http://i":              "names a-0 twice",
		"--member a-0=http://h --member a-1=https://i":             "some URLs use https, others http",
		"--member a-0=https://h --cacert x":                        "with https requires --cacert, --cert and --key",
		"--member a-0=http://h --cacert x --cert y --key z":        "--key and --verify-host require https in --member",
		"--member a-0=http://h --verify-host":                      "--key and --verify-host require https in --member",
		"--member a-0=https://h --verify-host":                     "with https requires --cacert, --cert and --key",
		"--member a-0=https://h --verify-host --cacert x --cert y": "you may omit both --cert and --key",
		"--member a-0=http://h --user root":                        "--user and --password-file must be set together",
		"--member a-0=http://h --password-file x":                  "--user and --password-file must be set together",
		"--cacert x":  "require --member",
		"--user root": "require --member",
		// URLs without a name.
		"--member 10.0.0.1:2379":                               `--member "10.0.0.1:2379": expected NAME=https://HOST:2379`,
		"--member ftp://h":                                     `or https://HOST:2379`,
		"--member https://h/x":                                 `--member "https://h/x": expected NAME=https://HOST:2379`,
		"--member https://h?x=secret":                          `--member "https://h?…": expected NAME=https://HOST:2379`,
		"--member https://h#secret":                            `--member "https://h#…": expected NAME=https://HOST:2379`,
		"--member https://h?token=x@secret":                    `--member "…": expected NAME=https://HOST:2379`,
		"--member https://root:a?@secret@h":                    `--member "…": expected NAME=https://HOST:2379`,
		"--member https://me:se=secret@h":                      `--member "…@h": expected NAME=https://HOST:2379`,
		"--member https://h(x)":                                `--member "https://h(x)": expected NAME=https://HOST:2379`,
		"--member http://h --member http://h:2379":             "--member has the address h:2379 twice",
		"--member http://h --member a-0=http://h":              "--member has the address h:2379 twice",
		"--member http://h --member https://i":                 "some URLs use https, others http",
		"--member https://h":                                   "with https requires --cacert, --cert and --key",
		"--member https://h --cacert x --cert y":               "without NAME= in --member, you may omit both --cert and --key",
		"--member https://h --member a-1=https://i --cacert x": "with https requires --cacert, --cert and --key",
		"--member http://h --verify-host":                      "--key and --verify-host require https in --member",
		// --credentials replaces the flags for individual values.
		"--credentials=":  "expected a value",
		"--credentials /": "require --member",
		"--member http://h --credentials / --cacert x":        "--credentials cannot be combined with --cacert, --cert, --key, --user or --password-file",
		"--member https://h --credentials / --cert x":         "--credentials cannot be combined with",
		"--member https://h --credentials / --key x":          "--credentials cannot be combined with",
		"--member http://h --credentials / --user x":          "--credentials cannot be combined with",
		"--member http://h --credentials / --password-file x": "--credentials cannot be combined with",
		"--member http://h --credentials / --verify-host":     "--key and --verify-host require https in --member",
		"--member http://h --credentials /nowhere":            "--credentials: directory /nowhere does not exist",
		"--member https://h --credentials /":                  "--credentials /: ca.crt is missing",
	} {
		var out bytes.Buffer
		full := append([]string{"backup", "ns/a", "--to", filepath.Join(t.TempDir(), "a.db")}, strings.Fields(args)...)
		code := execute(t.Context(), full, streams{out: &out, err: &out})
		if said := strings.Join(strings.Fields(out.String()), " "); code != exitInvalid || !strings.Contains(said, want) || strings.Contains(said, "secret") {
			t.Errorf("%s: exit code %d: %s", args, code, said)
		}
	}
}

// newPairs writes a CA, a server certificate for the given names or IP addresses, and a client certificate to a
// directory.
func newPairs(t *testing.T, names ...string) string {
	t.Helper()
	dir, now := t.TempDir(), time.Now()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other, err := pki.NewCA("b", "ns", now)
	if err != nil {
		t.Fatal(err)
	}
	write("other.crt", other.Pair().Certificate)
	ca, err := pki.NewCA("a", "ns", now)
	if err != nil {
		t.Fatal(err)
	}
	write("ca.crt", ca.Pair().Certificate)
	var addresses []net.IP
	names = slices.DeleteFunc(names, func(name string) bool {
		ip := net.ParseIP(name)
		if ip != nil {
			addresses = append(addresses, ip)
		}
		return ip != nil
	})
	for name, leaf := range map[string]pki.Leaf{
		"server": {CommonName: "server", DNSNames: names, IPAddresses: addresses, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}},
		"client": {CommonName: "client", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	} {
		pair, err := ca.Issue(leaf, now)
		if err != nil {
			t.Fatal(err)
		}
		write(name+".crt", pair.Certificate)
		write(name+".key", pair.Key)
	}
	return dir
}

// startTLS starts an etcd that requires client certificates, and returns its URL.
func startTLS(t *testing.T, program, files string) string {
	t.Helper()
	return startTLSAt(t, procgrouptest.Address(), program, files)
}

func startTLSAt(t *testing.T, address, program, files string) string {
	t.Helper()
	url, peer := "https://"+address, "http://"+procgrouptest.Address()
	etcd := exec.Command(program, "--name=a-0", "--data-dir="+t.TempDir(), "--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=a-0="+peer, "--log-level=error",
		"--client-cert-auth", "--trusted-ca-file="+filepath.Join(files, "ca.crt"),
		"--cert-file="+filepath.Join(files, "server.crt"), "--key-file="+filepath.Join(files, "server.key"))
	startEtcd(t, etcd)
	return url
}

// startEtcd starts an etcd that is killed when the test ends.
func startEtcd(t *testing.T, etcd *exec.Cmd) {
	t.Helper()
	etcd.SysProcAttr = procgroup.WithParent()
	var said bytes.Buffer
	etcd.Stderr = &said
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = etcd.Process.Kill()
		if _ = etcd.Wait(); t.Failed() {
			fmt.Fprintln(t.Output(), said.String())
		}
	})
}
