package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/datadir"
	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/internal/procgroup/procgrouptest"
	"quorate.dev/quorate/reconcile/decide"
)

// recoveries recovers copies of the data of an etcd that had a single member, a-0, and contained the key k.
type recoveries struct {
	restores // for checking the content of the volume
	etcd     string
	left     string
	peer     string
	id       snapshot.Identity
}

// newRecoveries starts an etcd, sends a first write followed by the requests, and kills the etcd.
func newRecoveries(t *testing.T, requests ...string) recoveries {
	t.Helper()
	programs := etcdPrograms(t)
	r := recoveries{restores{T: t, volume: t.TempDir()}, programs[len(programs)-1], t.TempDir(), "http://" + procgrouptest.Address(), snapshot.Identity{}}
	url, etcd := r.start(r.left, "--initial-cluster=a-0="+r.peer)
	for _, request := range append([]string{`/v3/kv/put {"key":"aw==","value":"dg=="}`}, requests...) {
		path, body, _ := strings.Cut(request, " ")
		if status, said := post(t, url+path, body); status != http.StatusOK {
			t.Fatalf("%s: %d %s", request, status, said)
		}
	}
	if got := r.recover(r.left, "--dry-run", "--cluster-id="); got.code != exitBlocked || !strings.Contains(got.err, "etcd is running on the data directory") {
		t.Errorf("%+v", got)
	}
	_ = etcd.Process.Kill()
	_ = etcd.Wait()
	var err error
	if r.id, err = snapshot.IdentityOf(r.left); err != nil {
		t.Fatal(err)
	}
	r.copied()
	return r
}

// start starts etcd as a-0, and waits until it serves requests.
func (r recoveries) start(dir string, flags ...string) (url string, etcd *exec.Cmd) {
	r.Helper()
	url = "http://" + procgrouptest.Address()
	etcd = exec.Command(r.etcd, append([]string{"--name=a-0", "--data-dir=" + dir, "--listen-client-urls=" + url, "--advertise-client-urls=" + url,
		"--listen-peer-urls=" + r.peer, "--initial-advertise-peer-urls=" + r.peer, "--log-level=warn", "--log-outputs=stderr"}, flags...)...)
	startEtcd(r.T, etcd)
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		answer, err := http.Get(url + "/health")
		if err == nil {
			answer.Body.Close()
		}
		if err == nil && answer.StatusCode == http.StatusOK {
			return url, etcd
		}
		if time.Now().After(end) {
			r.Fatalf("etcd does not serve: %v", err)
		}
	}
}

func post(t *testing.T, url, body string) (status int, said string) {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// copied copies the surviving data to an empty volume.
func (r *recoveries) copied() {
	r.Helper()
	r.volume = r.TempDir()
	if err := snapshot.CopyMember(r.Context(), r.left, r.dir()); err != nil {
		r.Fatal(err)
	}
	unlock, err := disk.Lock(r.Context(), datadir.Recovery{Dir: r.dir()}.LockFile(), nil) // the lock file remains
	if err != nil {
		r.Fatal(err)
	}
	unlock()
}

func (r recoveries) args(dir string, more ...string) []string {
	return append([]string{"recover", "--data-dir=" + dir, "--cluster-id=" + snapshot.FormatID(r.id.ClusterID), "--etcd=" + r.etcd}, more...)
}

func (r recoveries) recover(dir string, more ...string) ran {
	var out, stderr bytes.Buffer
	code := execute(r.Context(), r.args(dir, more...), streams{out: &out, err: &stderr})
	return ran{code: code, out: out.String(), err: strings.Join(strings.Fields(stderr.String()), " ")}
}

// isRecovered requires that a member of a new cluster is in place, as recorded in the mark, and that the previous
// member is kept.
func (r recoveries) isRecovered() {
	r.Helper()
	d := datadir.Recovery{Dir: r.dir(), Lost: r.id.ClusterID}
	told, done, err := d.Find()
	if err != nil || !done || told.NewRevision != told.Revision+snapshot.DefaultBump {
		r.Errorf("%+v, %v, %v", told, done, err)
	}
	kept := d.Kept()
	if was, err := snapshot.IdentityIn(kept); err != nil || was != r.id {
		r.Errorf("%+v, %v; it was %+v", was, err, r.id)
	}
	for _, part := range []string{"wal/0000000000000000-0000000000000000.wal", "snap/db"} {
		was, err := os.ReadFile(filepath.Join(r.left, "member", part))
		if is, missing := os.ReadFile(filepath.Join(kept, part)); err != nil || missing != nil || !bytes.Equal(was, is) {
			r.Errorf("%s is not as it was: %v %v", part, err, missing)
		}
	}
	entries, err := os.ReadDir(r.dir())
	if err != nil || len(entries) != 4 { // including the mark and the lock file
		r.Errorf("%v, %v", entries, err)
	}
}

// TestRecoverCreatesClusterOnce checks that a new cluster is created from a member's data directory only once, and only
// if the member belongs to the named cluster.
func TestRecoverCreatesClusterOnce(t *testing.T) {
	t.Parallel()
	r := newRecoveries(t)
	r.unchanged(exitOK, fmt.Sprintf("of cluster %s: a voter, one of 1\nits log ends at term 2, index ", decide.ID(r.id.ClusterID)), func() ran { return r.recover(r.dir(), "--dry-run") })
	r.unchanged(exitInvalid, "--cluster-id is required", func() ran { return r.recover(r.dir(), "--cluster-id=") })
	r.unchanged(exitInvalid, "expected hexadecimal digits", func() ran { return r.recover(r.dir(), "--cluster-id=a-0") })
	r.unchanged(exitBlocked, "this member cannot be used to create a cluster: the directory holds a member of cluster "+decide.ID(r.id.ClusterID).String()+
		", not of ab (--cluster-id)", func() ran { return r.recover(r.dir(), "--cluster-id=ab") })
	programs := etcdPrograms(t)
	r.unchanged(exitBlocked, "this etcd version must not be started with the data", func() ran { return r.recover(r.dir(), "--etcd="+programs[0]) })
	r.unchanged(exitBlocked, "the data directory does not contain a member", func() ran { return r.recover(r.volume) })

	got := r.recover(r.dir())
	if got.code != exitOK || got.err != "" || !strings.Contains(got.out, "recovered cluster "+decide.ID(r.id.ClusterID).String()+" from member a-0 into "+r.dir()) ||
		!strings.Contains(got.out, "  --initial-cluster=a-0="+r.peer+"\n") {
		t.Fatalf("%+v", got)
	}
	r.isRecovered()
	_, steps, _ := strings.Cut(got.out, "is kept in ")
	_, steps, _ = strings.Cut(steps, "\n")
	steps = regexp.MustCompile("(?m)^  --initial-cluster-token=.*\n").ReplaceAllString(steps, "") // random, and no longer needed
	r.unchanged(exitOK, " is left unchanged\n"+steps, func() ran { return r.recover(r.dir()) })
	if _, err := snapshot.WorkspaceBeside(r.dir()); err != nil { // as left by a process killed after the recovery
		t.Fatal(err)
	}
	if got := r.recover(r.dir()); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	r.isRecovered()
	made, err := snapshot.IdentityOf(r.dir())
	if err != nil {
		t.Fatal(err)
	}
	_, flags, _ := strings.Cut(got.out, "TLS flags and\n")
	url, etcd := r.start(r.dir(), strings.Fields(flags)[3:]...)
	if identity, revision := askWho(t, url); identity != made || revision <= snapshot.DefaultBump {
		t.Errorf("%+v at %d; it was created as %+v", identity, revision, made)
	}
	if _, said := post(t, url+"/v3/kv/range", `{"key":"aw=="}`); !strings.Contains(said, `"value":"dg=="`) {
		t.Error(said)
	}
	_ = etcd.Process.Kill()
	_ = etcd.Wait()

	// A member that was put back manually is recovered again only after the other member, whose origin is unknown, has
	// been moved away.
	kept := filepath.Join(r.dir(), "member.lost-"+snapshot.FormatID(r.id.ClusterID))
	if err := snapshot.Exchange(r.dir(), filepath.Base(kept)); err != nil {
		t.Fatal(err)
	}
	r.unchanged(exitBlocked, kept+" exists and is not known to be a leftover", func() ran { return r.recover(r.dir()) })
	if err := os.Rename(kept, filepath.Join(r.volume, "recovered")); err != nil {
		t.Fatal(err)
	}
	if got := r.recover(r.dir()); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	r.isRecovered()
}

// TestRecoverToStoresBackup checks that the surviving member is backed up and left unchanged, and that a cluster can be
// created from the backup.
func TestRecoverToStoresBackup(t *testing.T) {
	t.Parallel()
	r := newRecoveries(t)
	file := filepath.Join(t.TempDir(), "a.db")
	r.unchanged(exitInvalid, "name the cluster", func() ran { return r.recover(r.dir(), "--to="+file) })
	r.unchanged(exitInvalid, "a cluster name can be set only with --to", func() ran { return r.recover(r.dir(), "ns/a") })
	r.store = t.TempDir()
	for to, said := range map[string]string{file: "ns/a backed up as " + file, "file://" + r.store: "z in file://" + r.store} {
		was := contents(t, r.dir())
		got := r.recover(r.dir(), "ns/a", "--to="+to)
		if got.code != exitOK || got.err != "" || !strings.Contains(strings.Join(strings.Fields(got.out), " "), said) ||
			!strings.Contains(got.out, "from a-0") || !strings.Contains(got.out, "not compared with a quorum: it is the data of a stopped member") {
			t.Errorf("%+v", got)
		}
		if is := contents(t, r.dir()); is != was {
			t.Errorf("%s has become %s", was, is)
		}
	}
	from := restores{t, r.store, t.TempDir(), filepath.Join(t.TempDir(), "result")}
	if got := from.restore("--peer-url=" + r.peer); got.code != exitOK || got.err != "" {
		t.Fatalf("%+v", got)
	}
	if told := from.told(); told.SourceClusterID != snapshot.FormatID(r.id.ClusterID) || told.Revision != 2 {
		t.Errorf("%+v", told)
	}
	url, _ := r.start(from.dir(), "--initial-cluster=a-0="+r.peer, "--initial-cluster-token=ns-a-t")
	if _, said := post(t, url+"/v3/kv/range", `{"key":"aw=="}`); !strings.Contains(said, `"value":"dg=="`) {
		t.Error(said)
	}
}

// TestRecoverToRemovesLeftovers checks that a run removes the leftovers of an earlier, killed run, but does not touch
// the files of a run in progress.
func TestRecoverToRemovesLeftovers(t *testing.T) {
	r := newRecoveries(t)
	left := filepath.Join(r.dir(), ".restore-1", "data", "member")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	to := "--to=" + filepath.Join(t.TempDir(), "a.db")
	unlock, err := disk.Lock(t.Context(), datadir.Recovery{Dir: r.dir()}.LockFile(), nil) // as a running process holds it
	if err != nil {
		t.Fatal(err)
	}
	r.unchanged(exitError, "another process is recovering", func() ran { return r.recover(r.dir(), "ns/a", to, "--timeout=1s") })
	unlock()
	if got := r.recover(r.dir(), "ns/a", to); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	if entries, err := os.ReadDir(r.dir()); err != nil || len(entries) != 2 { // the member and the lock
		t.Errorf("%v, %v", entries, err)
	}
}

// contents lists the content of a directory, with checksums of files.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var said strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			fmt.Fprintln(&said, path)
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&said, "%s %x\n", path, sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return said.String()
}

// TestRecoverRejectsDamagedData checks that damaged data is neither recovered nor changed. A torn end of the log, as
// after a power loss, does not count as damage.
func TestRecoverRejectsDamagedData(t *testing.T) {
	t.Parallel()
	r := newRecoveries(t)
	log, database := "wal/0000000000000000-0000000000000000.wal", "snap/db"
	change := func(part string, change func(content []byte) []byte) {
		t.Helper()
		path := filepath.Join(r.dir(), "member", part)
		content, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		part, said string
		change     func(content []byte) []byte
	}{
		{log, "the database is damaged: its log", func(c []byte) []byte { c[200] ^= 1; return c }},
		{database, "the database is damaged", func(c []byte) []byte { return c[:3*4096] }},
		{database, "the database is damaged", func([]byte) []byte { return nil }},
		{database, "the database is damaged", func(c []byte) []byte { return bytes.Repeat([]byte("x"), len(c)) }},
	} {
		r.copied()
		change(c.part, c.change)
		r.unchanged(exitBlocked, c.said, func() ran { return r.recover(r.dir()) })
	}
	r.copied()
	if err := os.Remove(filepath.Join(r.dir(), "member", database)); err != nil {
		t.Fatal(err)
	}
	r.unchanged(exitError, "no such file", func() ran { return r.recover(r.dir()) })
	r.copied()
	change(log, func(c []byte) []byte {
		end := len(bytes.TrimRight(c, "\x00"))
		return c[:end-3]
	})
	if got := r.recover(r.dir()); got.code != exitOK {
		t.Errorf("%+v", got)
	}
}

// TestRecoverKeepsAuthenticationEnabled checks that authentication is still enabled after a recovery.
func TestRecoverKeepsAuthenticationEnabled(t *testing.T) {
	t.Parallel()
	r := newRecoveries(t, `/v3/auth/user/add {"name":"root","password":"secret"}`, `/v3/auth/role/add {"name":"root"}`,
		`/v3/auth/user/grant {"user":"root","role":"root"}`, `/v3/auth/enable {}`)
	if got := r.recover(r.dir()); got.code != exitOK || !strings.Contains(got.out, "authentication is enabled") {
		t.Fatalf("%+v", got)
	}
	r.store = t.TempDir()
	r.copied()
	if got := r.recover(r.dir(), "ns/a", "--to=file://"+r.store); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	from := restores{t, r.store, t.TempDir(), filepath.Join(t.TempDir(), "result")}
	if got := from.restore("--peer-url=" + r.peer); got.code != exitOK || !strings.Contains(got.out, "authentication is enabled") {
		t.Fatalf("%+v", got)
	}
	if got := r.recover(r.dir()); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	url, _ := r.start(r.dir())
	if status, said := post(t, url+"/v3/kv/range", `{"key":"aw=="}`); status == http.StatusOK {
		t.Error(said)
	}
	status, said := post(t, url+"/v3/auth/authenticate", `{"name":"root","password":"secret"}`)
	if status != http.StatusOK {
		t.Errorf("%d %s", status, said)
	}
}

// TestKilledRecoverKeepsPreviousMember checks that, if a recovery is killed at any point, either the previous member is
// in place, or the recovered member is in place and the previous member is next to it. After the next attempt, both
// exist.
func TestKilledRecoverKeepsPreviousMember(t *testing.T) {
	t.Parallel()
	kill := newKilling(t)
	r := newRecoveries(t)
	killed := 0
	for call, step := range map[string]int{"renameat2": 1, "fsync": 4} {
		r.copied()
		for n := 1; ; n += step {
			_, err := kill.at(call, n, r.args(r.dir())...)
			found, unknown := snapshot.IdentityOf(r.dir())
			if unknown != nil {
				t.Fatalf("%s %d: %v", call, n, unknown)
			}
			if err != nil {
				killed++
			}
			if found == r.id && err == nil {
				t.Fatalf("%s %d: it is reported as recovered", call, n)
			}
			if err == nil || found != r.id {
				if got := r.recover(r.dir()); got.code != exitOK || !strings.Contains(got.out, "was recovered at") && found != r.id {
					t.Errorf("%s %d: %+v", call, n, got)
				}
				r.clearedUp()
				r.isRecovered()
				r.copied()
			}
			if err == nil {
				break
			}
		}
	}
	if killed < 3 {
		t.Errorf("it was killed %d times", killed)
	}
}

// clearedUp removes the leftovers of a process that was killed after the last step. The leftovers may only be empty
// directories of a workspace.
func (r recoveries) clearedUp() {
	r.Helper()
	entries, err := os.ReadDir(r.dir())
	if err != nil {
		r.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(r.dir(), entry.Name())
		if !strings.HasPrefix(entry.Name(), ".restore-") {
			continue
		}
		if _, err := os.Stat(filepath.Join(path, "data", "member")); !errors.Is(err, os.ErrNotExist) {
			r.Errorf("%s is left: %v", path, err)
		}
		if err := os.RemoveAll(path); err != nil {
			r.Fatal(err)
		}
	}
}

// TestRecoverRefusesBusyOrUnsafeDirectory checks that a member is not replaced while an etcd is waiting for its files,
// because that etcd would start with a mix of old and new files. Links are not followed, and root does not act in
// another user's directory.
func TestRecoverRefusesBusyOrUnsafeDirectory(t *testing.T) {
	t.Parallel()
	r := newRecoveries(t)
	waiting, err := os.OpenFile(filepath.Join(r.dir(), "member", "snap", "db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := r.recover(r.dir())
	if found, err := snapshot.IdentityOf(r.dir()); got.code != exitBlocked || !strings.Contains(got.err, "etcd is running on the data directory") || err != nil || found != r.id {
		t.Errorf("%+v, %+v, %v", got, found, err)
	}
	if made, err := snapshot.IdentityIn(filepath.Join(r.dir(), "member.lost-"+snapshot.FormatID(r.id.ClusterID))); err != nil || made == r.id {
		t.Errorf("%+v, %v: what was made is to be where the other one would have been kept", made, err)
	}
	if err := waiting.Close(); err != nil {
		t.Fatal(err)
	}
	if got := r.recover(r.dir()); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	r.isRecovered()

	r.copied()
	snap := filepath.Join(r.dir(), "member", "snap")
	elsewhere := filepath.Join(t.TempDir(), "snap")
	if err := errors.Join(os.Rename(snap, elsewhere), os.Symlink(elsewhere, snap)); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--dry-run"}, {}} {
		if got := r.recover(r.dir(), flags...); got.code != exitBlocked || !strings.Contains(got.err, snap+" is not a directory") {
			t.Errorf("%+v", got)
		}
	}

	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	for part, give := range map[string]func(string) error{
		"":           func(dir string) error { return os.Lchown(dir, 65532, 65532) },
		"member":     func(dir string) error { return os.Chmod(dir, 0o2775) },
		"member/wal": func(dir string) error { return os.Lchown(dir, 65532, 0) },
	} {
		r.copied()
		dir, link := filepath.Join(r.dir(), part), filepath.Join(t.TempDir(), "link")
		if err := errors.Join(give(dir), os.Symlink(r.dir(), link)); err != nil {
			t.Fatal(err)
		}
		for _, by := range []string{r.dir(), link} {
			if got := r.recover(by, "--dry-run"); got.code != exitInvalid || !strings.Contains(got.err, "users other than root can change "+dir) {
				t.Errorf("%+v", got)
			}
		}
	}
	r.copied()
	above, work := filepath.Dir(r.dir()), t.TempDir()
	for _, give := range []string{above, work} {
		if err := os.Lchown(give, 65532, 65532); err != nil {
			t.Fatal(err)
		}
		if got := r.recover(r.dir(), "--dry-run", "--dir="+work); got.code != exitInvalid || !strings.Contains(got.err, "users other than root can change "+give+":") {
			t.Errorf("%+v", got)
		}
		if err := os.Lchown(give, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.recover(r.dir(), "--dry-run", "--dir="+os.TempDir()); got.code != exitOK {
		t.Errorf("a sticky directory: %+v", got)
	}
}
