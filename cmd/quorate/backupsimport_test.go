package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/internal/procgroup/procgrouptest"
	"quorate.dev/quorate/reconcile/decide"
)

// imports imports the volumes of a stopped cluster of three voters: old-0, old-1 and old-2. The data is in the directory
// data/default.etcd of each volume. The key k, with the value v, is missing from old-2, which was stopped before the others.
type imports struct {
	restores
	etcd    string
	volumes [3]string
	peers   [3]string
	id      string
}

func newImports(t *testing.T) imports {
	t.Helper()
	programs := etcdPrograms(t)
	i := imports{restores: restores{T: t, store: t.TempDir()}, etcd: programs[len(programs)-1]}
	var urls []string
	var members []*exec.Cmd
	for n := range i.volumes {
		i.volumes[n], i.peers[n] = t.TempDir(), "http://"+procgrouptest.Address()
	}
	for n := range i.volumes {
		url, etcd := i.member(n, i.dataDir(n))
		urls, members = append(urls, url), append(members, etcd)
	}
	for _, url := range urls {
		waitForHealth(t, http.DefaultClient, url, time.Minute)
	}
	put := func(url, body string) {
		t.Helper()
		if status, said := post(t, url+"/v3/kv/put", body); status != http.StatusOK {
			t.Fatalf("%d %s", status, said)
		}
	}
	put(urls[2], `{"key":"Zmlyc3Q=","value":"dg=="}`)
	for _, url := range urls { // commits the member list to the database, which a killed member may not have done yet
		if status, said := post(t, url+"/v3/maintenance/defragment", "{}"); status != http.StatusOK {
			t.Fatalf("%d %s", status, said)
		}
	}
	for _, n := range []int{2, 0, 1} {
		if n == 0 {
			waitForHealth(t, http.DefaultClient, urls[0], time.Minute) // with a leader
			put(urls[0], `{"key":"aw==","value":"dg=="}`)
		}
		_ = members[n].Process.Kill()
		_ = members[n].Wait()
	}
	identity, err := snapshot.IdentityOf(i.dataDir(0))
	if err != nil {
		t.Fatal(err)
	}
	i.id = decide.ID(identity.ClusterID).String()
	return i
}

func (i imports) dataDir(n int) string { return filepath.Join(i.volumes[n], "data", "default.etcd") }

// member starts member n with a data directory.
func (i imports) member(n int, dir string) (url string, etcd *exec.Cmd) {
	i.Helper()
	url = "http://" + procgrouptest.Address()
	etcd = exec.Command(i.etcd, fmt.Sprint("--name=old-", n), "--data-dir="+dir, "--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+i.peers[n], "--initial-advertise-peer-urls="+i.peers[n], "--log-level=warn", "--log-outputs=stderr",
		fmt.Sprintf("--initial-cluster=old-0=%s,old-1=%s,old-2=%s", i.peers[0], i.peers[1], i.peers[2]))
	startEtcd(i.T, etcd)
	return url, etcd
}

// run imports the given volumes.
func (i imports) run(volumes []string, more ...string) ran {
	i.Helper()
	args := []string{"backups", "import", "ns/a", "--cluster-id=" + i.id, "--to=file://" + i.store, "--etcd=" + i.etcd}
	for _, volume := range volumes {
		args = append(args, "--data-dir="+volume)
	}
	var out, stderr bytes.Buffer
	code := execute(i.Context(), append(args, more...), streams{out: &out, err: &stderr})
	return ran{code: code, out: out.String(), err: strings.Join(strings.Fields(stderr.String()), " ")}
}

// content returns the content of all volumes.
func (i imports) content() (said string) {
	i.Helper()
	for _, volume := range i.volumes {
		said += contents(i.T, volume)
	}
	return said
}

// holds restores the backup that a result names, and reports whether it contains the key k.
func (i imports) holds(result string) bool {
	i.Helper()
	r := restores{i.T, i.store, i.TempDir(), filepath.Join(i.TempDir(), "result")}
	peer := "http://" + procgrouptest.Address()
	if got := r.restore("--peer-url="+peer, "--expect="+result); got.code != exitOK {
		i.Fatalf("%+v", got)
	}
	i.peers[0] = peer
	of := recoveries{restores: r, etcd: i.etcd, peer: peer}
	url, etcd := of.start(r.dir(), "--initial-cluster=a-0="+peer, "--initial-cluster-token=ns-a-t")
	defer func() { _ = etcd.Process.Kill(); _ = etcd.Wait() }()
	if _, said := post(i.T, url+"/v3/kv/range", `{"key":"Zmlyc3Q="}`); !strings.Contains(said, `"value":"dg=="`) {
		i.Error(said)
	}
	_, said := post(i.T, url+"/v3/kv/range", `{"key":"aw=="}`)
	return strings.Contains(said, `"value":"dg=="`)
}

// TestImportHasEveryAcknowledgedWrite checks that the data of a majority of a stopped cluster's voters has every
// acknowledged write, that less data is rejected, and that the volumes are not changed.
func TestImportHasEveryAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	i := newImports(t)
	v, told := i.volumes, filepath.Join(t.TempDir(), "result.json")
	was := i.content()
	for name, test := range map[string]struct {
		volumes []string
		more    []string
		said    string
		holds   bool
	}{
		"all":                 {v[:], nil, "using the data of member old-", true},
		"majority":            {[]string{v[2], v[1]}, nil, "using the data of member old-1 in " + i.dataDir(1), true},
		"data directories":    {[]string{i.dataDir(0), i.dataDir(2)}, nil, "using the data of member old-0 in " + i.dataDir(0), true},
		"path":                {[]string{v[2], v[0]}, []string{"--path=data/default.etcd"}, "using the data of member old-0", true},
		"minority, with lag":  {[]string{v[2]}, []string{"--accept-lag"}, "the data may lack acknowledged writes: this is the data of 1 of 3 voters", false},
		"the latest minority": {[]string{v[1]}, []string{"--accept-lag"}, "not compared with a quorum: it is the data of a stopped member", true},
	} {
		got := i.run(test.volumes, append(test.more, "--result="+told)...)
		if got.code != exitOK || !strings.Contains(got.out+got.err, test.said) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if holds := i.holds(told); holds != test.holds {
			t.Errorf("%s: it has the last write: %t", name, holds)
		}
	}
	damaged := t.TempDir()
	if err := snapshot.CopyMember(t.Context(), i.dataDir(2), filepath.Join(damaged, "data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(snapshot.Database(filepath.Join(damaged, "data")), 8192); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		volumes []string
		more    []string
		code    int
		said    string
	}{
		"minority": {[]string{v[2]}, nil, exitBlocked, "this is the data of 1 of 3 voters, and 2 are required. Add the data of old-0 ("},
		"twice":    {[]string{v[2], v[0], i.dataDir(2)}, []string{"--accept-lag"}, exitBlocked, "both hold the data of member"},
		"another cluster": {v[:], []string{"--cluster-id=c1"}, exitBlocked,
			"import ns/a: this member cannot be used to create a cluster: " + i.dataDir(0) + " belongs to cluster " + i.id + ", not c1"},
		"no data":           {[]string{v[0], v[1], t.TempDir()}, nil, exitBlocked, "contains member/wal and member/snap; specify the path of the data directory (--path; in a declaration, spec.restore"},
		"damaged":           {[]string{v[0], v[1], damaged}, nil, exitBlocked, filepath.Join(damaged, "data") + ": the database is damaged: it has 8192 of"},
		"damaged, advice":   {[]string{v[0], v[1], damaged}, nil, exitBlocked, "To proceed, omit this member's data if a majority of the voters remains"},
		"wrong path":        {v[:], []string{"--path=data"}, exitBlocked, "the data directory does not contain a member. Correct the path (--path"},
		"outside":           {v[:], []string{"--path=../data"}, exitInvalid, "--path ../data: expected a path below --data-dir"},
		"too large":         {v[:], []string{"--max-bytes=4096"}, exitBlocked, "more than 4096 bytes; to raise the limit, set --max-bytes"},
		"nothing":           {nil, nil, exitInvalid, "--data-dir is required"},
		"prepared":          {v[:], []string{"--prepared", "--dir=" + t.TempDir(), "--etcd-version=3.6.16"}, exitInvalid, "except with --prepared"},
		"no ID":             {v[:], []string{"--cluster-id="}, exitInvalid, "expected hexadecimal digits"},
		"result of prepare": {v[:], []string{"--prepare", "--dir=" + t.TempDir(), "--etcd-version=3.6.16", "--result=" + told}, exitInvalid, "--result requires --prepared"},
	} {
		if got := i.run(test.volumes, test.more...); got.code != test.code || !strings.Contains(got.err, test.said) {
			t.Errorf("%s: want %q: %+v", name, test.said, got)
		}
	}
	if is := i.content(); is != was {
		t.Errorf("%s has become %s", was, is)
	}
	i.member(1, i.dataDir(1)) // without a leader
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		got := i.run(v[:])
		if got.code == exitBlocked && strings.Contains(got.err, "hold "+i.dataDir(1)+": etcd is running on the data directory. Stop it") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", got)
		}
	}
}

// TestImportWithExternalEtcd checks an import with two commands, as in a pod: the first copies the data, and gives the group
// access to the copy. An etcd that is started externally then runs on the copy.
func TestImportWithExternalEtcd(t *testing.T) {
	t.Parallel()
	i := newImports(t)
	work, told := t.TempDir(), filepath.Join(t.TempDir(), "result.json")
	apart := []string{"--dir=" + work, "--etcd-version=" + versionOf(t, i.etcd)}
	was := i.content()
	for range 2 {
		if got := i.run([]string{i.volumes[2], i.volumes[0]}, append(apart, "--prepare")...); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
	}
	for path, want := range map[string]os.FileMode{"survivor.json": 0o660, recovery.ConfigFile: 0o660, "data": 0o770, "data/member/wal": 0o770,
		"data/member/snap/db": 0o660, "data/member/wal/0000000000000000-0000000000000000.wal": 0o660} {
		if info, err := os.Lstat(filepath.Join(work, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	etcd := exec.Command(i.etcd, "--config-file="+recovery.ConfigFile)
	etcd.Dir = work
	startEtcd(t, etcd)
	if got := i.run(nil, append(apart, "--prepared", "--cluster-id=c1")...); got.code != exitBlocked || !strings.Contains(got.err, "belongs to cluster "+i.id+", not c1") {
		t.Errorf("%+v", got)
	}
	if got := i.run(nil, append(apart, "--prepared", "--result="+told)...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if !i.holds(told) {
		t.Error("the last write is missing")
	}
	if is := i.content(); is != was {
		t.Errorf("%s has become %s", was, is)
	}
}
