package main

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/internal/procgroup/procgrouptest"
)

// mountedSecret creates a directory like a Secret mounted by the kubelet, in which each file is a symbolic link.
func mountedSecret(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	const version = "..2026_11_22_18_00_00.1234"
	if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(version, filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, version, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestCredentialsDirectory checks which files in --credentials are used. If one file of a pair is missing, the error must
// name the directory and the missing file, and must not contain file contents.
func TestCredentialsDirectory(t *testing.T) {
	t.Parallel()
	whole := map[string]string{"ca.crt": "CA", "tls.crt": "CERT", "tls.key": "KEY", "username": "root\n", "password": " pass word\n", "notes": "x"}
	only := func(names ...string) map[string]string {
		kept := maps.Clone(whole)
		maps.DeleteFunc(kept, func(name, _ string) bool { return !slices.Contains(names, name) })
		return kept
	}
	login := etcd.Login{User: "root", Password: " pass word"}
	for name, c := range map[string]struct {
		files       map[string]string
		members     []string
		tls         string // the CA, the certificate and the key
		anonymous   bool
		login       etcd.Login
		wrong       string // the error after the name of the directory
		verifyHosts bool
	}{
		"all files":                 {files: whole, members: []string{"https://h"}, tls: "CA CERT KEY", login: login},
		"names":                     {files: whole, members: []string{"a-0=https://h"}, tls: "CA CERT KEY", login: login},
		"without a password":        {files: only("ca.crt", "tls.crt", "tls.key"), members: []string{"https://h"}, tls: "CA CERT KEY"},
		"without a certificate":     {files: only("ca.crt", "username", "password"), members: []string{"https://h"}, tls: "CA  ", anonymous: true, login: login},
		"only the CA, hosts":        {files: only("ca.crt"), members: []string{"a-0=https://h"}, tls: "CA  ", anonymous: true, verifyHosts: true},
		"only the CA, names":        {files: only("ca.crt"), members: []string{"a-0=https://h"}, wrong: "tls.crt and tls.key are missing"},
		"only the CA, one name":     {files: only("ca.crt"), members: []string{"https://h", "a-0=https://i"}, wrong: "tls.crt and tls.key are missing"},
		"http":                      {files: whole, members: []string{"http://h"}, login: login},
		"http, part of certificate": {files: only("tls.key"), members: []string{"http://h"}},
		"no files":                  {files: nil, members: []string{"http://h"}, wrong: "the directory is empty. Does the Secret exist, and does it have keys such as ca.crt?"},
		"long":                      {files: map[string]string{"username": "root", "password": strings.Repeat("x", 1<<20+1)}, members: []string{"http://h"}, wrong: "read "},
		"no CA":                     {files: only("tls.crt", "tls.key"), members: []string{"https://h"}, wrong: "ca.crt is missing"},
		"notes, https":              {files: only("notes"), members: []string{"https://h"}, wrong: "ca.crt is missing"},
		"no key":                    {files: only("ca.crt", "tls.crt"), members: []string{"https://h"}, wrong: "tls.crt exists, but tls.key is missing"},
		"no certificate":            {files: only("ca.crt", "tls.key"), members: []string{"https://h"}, wrong: "tls.key exists, but tls.crt is missing"},
		"no password":               {files: only("username"), members: []string{"http://h"}, wrong: "username exists, but password is missing"},
		"no user":                   {files: only("password"), members: []string{"http://h"}, wrong: "password exists, but username is missing"},
		"empty user":                {files: map[string]string{"username": "\n", "password": "pass word"}, members: []string{"http://h"}, wrong: "username is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			f := memberFlags{members: c.members, credentials: mountedSecret(t, c.files), verifyHost: c.verifyHosts}
			got, err := f.cluster(store.Cluster{Namespace: "ns", Name: "a"})
			if c.wrong != "" {
				if want := "--credentials " + f.credentials + ": " + c.wrong; !errors.As(err, &usageError{}) || !strings.HasPrefix(err.Error(), want) ||
					strings.Contains(err.Error(), "pass word") {
					t.Errorf("want %q: %v", want, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tls, user := "", etcd.Login{}
			if got.TLS != nil {
				tls = strings.Join([]string{string(got.TLS.CA), string(got.TLS.Cert), string(got.TLS.Key)}, " ")
			}
			if got.Login != nil {
				user = *got.Login
			}
			if tls != c.tls || user != c.login || got.TLS != nil && got.TLS.Anonymous != c.anonymous {
				t.Errorf("TLS %q, user %+v", tls, user)
			}
		})
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ca.crt"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := memberFlags{members: []string{"https://h"}, credentials: dir}
	if _, err := f.cluster(store.Cluster{Namespace: "ns", Name: "a"}); !errors.As(err, &usageError{}) || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("an unreadable file counts as missing: %v", err)
	}
}

// TestMembersWithoutNames checks that members without a name are named after their addresses, and that their certificates
// are verified against the host in the URL.
func TestMembersWithoutNames(t *testing.T) {
	f := memberFlags{members: []string{"https://etcd-0.etcd.prod.svc", "https://[fd00::1]:2380", "a-2=https://h:1"}, credentials: mountedSecret(t, map[string]string{
		"ca.crt": "CA", "tls.crt": "CERT", "tls.key": "KEY",
	})}
	got, err := f.cluster(store.Cluster{Namespace: "ns", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []etcd.Pod{
		{Name: "etcd-0.etcd.prod.svc:2379", IP: "etcd-0.etcd.prod.svc:2379", Host: "etcd-0.etcd.prod.svc"},
		{Name: "[fd00::1]:2380", IP: "[fd00::1]:2380", Host: "fd00::1"},
		{Name: "a-2", IP: "h:1"},
	}; !slices.Equal(got.Pods, want) || !slices.Equal(got.Voters, []string{want[0].Name, want[1].Name, "a-2"}) {
		t.Errorf("%+v", got)
	}
}

// TestBackupWithMountedCredentials checks that a real etcd with TLS is backed up by URL, with credentials from a
// directory, and that its certificate must contain the host in the URL.
func TestBackupWithMountedCredentials(t *testing.T) {
	t.Parallel()
	etcds := etcdPrograms(t)
	address := procgrouptest.Address()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	files := newPairs(t, host)
	url := startTLSAt(t, address, etcds[len(etcds)-1], files)
	secret := map[string]string{}
	for name, from := range map[string]string{"ca.crt": "ca.crt", "tls.crt": "client.crt", "tls.key": "client.key"} {
		content, err := os.ReadFile(filepath.Join(files, from))
		if err != nil {
			t.Fatal(err)
		}
		secret[name] = string(content)
	}
	dir, credentials := t.TempDir(), mountedSecret(t, secret)
	command := func(file, url string) (int, string) {
		var out bytes.Buffer
		code := execute(t.Context(), []string{"backup", "ns/a", "--to", filepath.Join(dir, file), "--member", url, "--credentials", credentials}, streams{out: &out, err: &out})
		return code, strings.Join(strings.Fields(out.String()), " ")
	}
	deadline := time.Now().Add(time.Minute)
	code, said := command("a.db", url)
	for code != exitOK && time.Now().Before(deadline) { // etcd is starting
		code, said = command("a.db", url)
	}
	if code != exitOK || !strings.Contains(said, "the same data as "+address) {
		t.Fatalf("exit code %d: %s", code, said)
	}
	// With a name, the certificate must contain the pod's DNS name instead.
	if code, said := command("b.db", "a-0="+url); code != exitError || !strings.Contains(said, "match a-0.a.ns.svc") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
