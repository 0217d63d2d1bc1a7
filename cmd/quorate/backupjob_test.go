package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/store"
)

// member is the only member of a real etcd cluster ns/a that runs without Kubernetes.
type member struct {
	url, files string
}

// etcdPrograms returns the available etcd programs, or skips the test.
func etcdPrograms(t *testing.T) []string {
	t.Helper()
	etcds, err := filepath.Glob(filepath.Join(os.Getenv("QUORATE_ETCD_DIR"), "etcd-*", "etcd"))
	if os.Getenv("QUORATE_ETCD_DIR") == "" || err != nil || len(etcds) == 0 {
		t.Skip("QUORATE_ETCD_DIR does not name a directory with etcd-<version>/etcd; make test sets it")
	}
	return etcds
}

// newMember starts a member, or skips the test if etcd is not available.
func newMember(t *testing.T) member {
	t.Helper()
	etcds := etcdPrograms(t)
	return newMemberOf(t, etcds[len(etcds)-1])
}

// newMemberOf starts a member with the given etcd program.
func newMemberOf(t *testing.T, etcd string) member {
	t.Helper()
	files := newPairs(t, "a-0.a.ns.svc")
	m := member{startTLS(t, etcd, files), files}
	deadline := time.Now().Add(time.Minute)
	for err := m.post("/v3/kv/range", `{"key":"aw=="}`); err != nil; err = m.post("/v3/kv/range", `{"key":"aw=="}`) {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // etcd is starting
	}
	return m
}

// post sends a request to etcd's HTTP gateway.
func (m member) post(path, body string) error {
	ca, err := os.ReadFile(filepath.Join(m.files, "ca.crt"))
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(m.files, "client.crt"), filepath.Join(m.files, "client.key"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: "a-0.a.ns.svc", MinVersion: tls.VersionTLS12,
	}}}
	defer client.CloseIdleConnections()
	answer, err := client.Post(m.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if said, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answered %d: %s", answer.StatusCode, said)
	}
	return nil
}

// flags returns the flags for the member at the given URL.
func (m member) flags(url string) []string {
	return []string{"--member", "a-0=" + url, "--cacert", filepath.Join(m.files, "ca.crt"),
		"--cert", filepath.Join(m.files, "client.crt"), "--key", filepath.Join(m.files, "client.key")}
}

// jobs takes backups in the way Jobs do.
type jobs struct {
	*testing.T
	member
	store, result string
}

func newJobs(t *testing.T) jobs {
	t.Helper()
	return jobs{t, newMember(t), t.TempDir(), filepath.Join(t.TempDir(), "termination-log")}
}

// backUp takes a backup in the way the Job with the given name would.
func (j jobs) backUp(job string, more ...string) ran {
	var out, stderr bytes.Buffer
	args := slices.Concat([]string{"backup", "ns/a", "--to", "file://" + j.store, "--job", job, "--result", j.result}, j.flags(j.url), more)
	code := execute(j.Context(), args, streams{out: &out, err: &stderr})
	return ran{code: code, out: out.String(), err: strings.Join(strings.Fields(stderr.String()), " ")}
}

// told returns the result of the last backup.
func (j jobs) told() result.Result {
	j.Helper()
	text, err := os.ReadFile(j.result)
	if err != nil {
		j.Fatal(err)
	}
	r, err := result.ParseResult(string(text))
	if err != nil {
		j.Fatalf("%v: %s", err, text)
	}
	return r
}

func (j jobs) backups() []store.Backup {
	j.Helper()
	b, err := store.Location{Directory: j.store}.Open(j.Context(), store.Options{})
	if err != nil {
		j.Fatal(err)
	}
	listing, err := store.List(j.Context(), b, store.Cluster{})
	if err != nil {
		j.Fatal(err)
	}
	return listing.Backups
}

// put writes a key, which raises the revision.
func (m member) put(t *testing.T) {
	t.Helper()
	if err := m.post("/v3/kv/put", `{"key":"aw==","value":"dg=="}`); err != nil {
		t.Fatal(err)
	}
}

// thisMinute returns the name that a CronJob gives a Job for this minute, and its slot.
func thisMinute() (name string, slot time.Time) {
	minutes := time.Now().Unix() / 60
	return fmt.Sprintf("a-backup-%d", minutes), time.Unix(minutes*60, 0).UTC()
}

const takenEarlier = " already exists; no new backup was taken"

// TestRestartedBackupJobTakesOneBackupPerSlot checks that a Job's slot gets exactly one valid backup, described by the
// result, no matter how often the pod is started and when it is killed.
func TestRestartedBackupJobTakesOneBackupPerSlot(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	job, slot := thisMinute()
	if got := j.backUp(job); got.code != exitOK || strings.Contains(got.err, takenEarlier) {
		t.Fatalf("%+v", got)
	}
	first := j.told()
	if !first.Slot.Equal(slot) || first.Suspect || first.Revision < 1 || first.Bytes < 4096 {
		t.Errorf("%+v", first)
	}
	// The first pod was killed after writing the manifest, and a second pod is started for the same slot.
	got := j.backUp(job)
	if got.code != exitOK || !strings.Contains(got.err, store.SlotID(slot)+takenEarlier) || !strings.Contains(got.out, "backed up as "+store.SlotID(slot)) {
		t.Errorf("%+v", got)
	}
	if again := j.told(); again != first || len(j.backups()) != 1 {
		t.Errorf("%+v, then %+v: %v", first, again, j.backups())
	}
	// The first pod was killed before writing the manifest.
	dir := filepath.Join(j.store, "ns", "a", first.ClusterID)
	if err := os.Remove(filepath.Join(dir, store.SlotID(slot)+".json")); err != nil {
		t.Fatal(err)
	}
	if got := j.backUp(job); got.code != exitOK || strings.Contains(got.err, takenEarlier) {
		t.Errorf("%+v", got)
	}
	second := j.told()
	if second.Data == first.Data || !second.Slot.Equal(slot) || len(j.backups()) != 1 {
		t.Errorf("%+v, then %+v: %v", first, second, j.backups())
	}
	// A manifest without data is not a backup.
	if err := os.Remove(filepath.Join(dir, second.Data)); err != nil {
		t.Fatal(err)
	}
	if got := j.backUp(job); got.code != exitOK || strings.Contains(got.err, takenEarlier) {
		t.Errorf("%+v", got)
	}
	if third := j.told(); !third.Slot.Equal(slot.Add(time.Second)) {
		t.Errorf("%+v, then %+v", second, third)
	}
	// A backup of a different cluster does not count.
	if err := os.Rename(dir, filepath.Join(filepath.Dir(dir), "00000000000000bb")); err != nil {
		t.Fatal(err)
	}
	if got := j.backUp(job); got.code != exitOK || strings.Contains(got.err, takenEarlier) {
		t.Errorf("%+v", got)
	}
	if ours := j.told(); ours.ClusterID != first.ClusterID || !ours.Slot.Equal(slot) {
		t.Errorf("%+v", ours)
	}
	// A manually created Job takes a new backup.
	before := time.Now().Truncate(time.Second)
	if got := j.backUp("by-hand"); got.code != exitOK || j.told().Slot.Before(before) {
		t.Errorf("%+v: %+v", got, j.told())
	}
}

// TestBackupJobRetakesSuspectBackup checks that a backup that may hold wrong data has a result, but that the next run
// takes another backup.
func TestBackupJobRetakesSuspectBackup(t *testing.T) {
	j := newJobs(t)
	if err := j.post("/v3/maintenance/alarm", `{"action":"ACTIVATE","memberID":"1","alarm":"CORRUPT"}`); err != nil {
		t.Fatal(err)
	}
	job, _ := thisMinute()
	for range 2 {
		if got := j.backUp(job); got.code != exitBlocked || strings.Contains(got.err, takenEarlier) || !j.told().Suspect {
			t.Errorf("%+v", got)
		}
	}
	if found := j.backups(); len(found) != 1 || !found[0].Suspect {
		t.Errorf("%+v", found)
	}
}

// TestBackupJobResultIsWrittenInPlace checks that the result is written into an existing file, whose permissions are
// kept. If the result cannot be written, the backup remains valid. A failed backup does not leave a result.
func TestBackupJobResultIsWrittenInPlace(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	if err := os.WriteFile(j.result, bytes.Repeat([]byte("x"), 5000), 0o640); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(j.result)
	if err != nil {
		t.Fatal(err)
	}
	if got := j.backUp("by-hand"); got.code != exitOK || got.err != "" {
		t.Fatalf("%+v", got)
	}
	if after, err := os.Stat(j.result); err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() || after.Size() > result.MaxBytes {
		t.Errorf("%+v, then %+v, %v", before, after, err)
	}
	j.told()
	if got := j.backUp("by-hand", "--s3-ca-file", "/dev/null/none"); got.code == exitOK {
		t.Fatalf("%+v", got)
	}
	if text, err := os.ReadFile(j.result); err != nil || len(text) > 0 {
		t.Errorf("a failed backup has the result %q, %v", text, err)
	}
	taken := len(j.backups())
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	j.result = "/dev/full"
	if got := j.backUp("by-hand"); got.code != exitOK || !strings.Contains(got.err, "the backup is stored, but --result was not written: ") || len(j.backups()) != taken+1 {
		t.Errorf("%+v: %v", got, j.backups())
	}
}

// TestStoppedBackupEndsAndEmptiesSpool checks that a backup whose pod is stopped ends promptly at any stage, without
// leaving any part of the snapshot behind.
func TestStoppedBackupEndsAndEmptiesSpool(t *testing.T) {
	t.Parallel()
	m := newMember(t)
	if err := m.post("/v3/kv/put", `{"key":"aw==","value":"`+base64.StdEncoding.EncodeToString(make([]byte, 1<<20))+`"}`); err != nil {
		t.Fatal(err)
	}
	storing := make(chan struct{}, 1)
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut { // an upload, which never gets a response
			_, _ = io.Copy(io.Discard, r.Body)
			storing <- struct{}{}
			<-r.Context().Done()
			return
		}
		if r.URL.Query().Has("list-type") { // the bucket exists and is empty
			_, _ = io.WriteString(w, "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer s3.Close()
	receiving, stalled := stallAfter(t, strings.TrimPrefix(m.url, "https://"), 128<<10)
	for name, c := range map[string]struct {
		url  string
		when <-chan struct{}
	}{"receiving": {"https://" + stalled, receiving}, "storing": {m.url, storing}} {
		t.Run(name, func(t *testing.T) {
			spool := t.TempDir()
			quorate := exec.CommandContext(t.Context(), testProgram(t), slices.Concat([]string{"backup", "ns/a", "--to", "s3://bucket", "--s3-endpoint", s3.URL,
				"--s3-path-style", "--s3-region", "x", "--spool", spool, "--job", "by-hand", "--result", filepath.Join(t.TempDir(), "result")}, m.flags(c.url))...)
			quorate.Args[0] = "quorate" // TestMain checks this name
			quorate.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b")
			var said bytes.Buffer
			quorate.Stdout, quorate.Stderr = &said, &said
			if err := quorate.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- quorate.Wait() }()
			select {
			case <-c.when:
			case err := <-ended:
				t.Fatalf("%v: %s", err, said.String())
			}
			for spooled, _ := os.ReadDir(spool); len(spooled) == 0; spooled, _ = os.ReadDir(spool) {
				time.Sleep(time.Millisecond)
			}
			if err := quorate.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			told := time.Now()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				_ = quorate.Process.Kill()
				t.Fatalf("it continues: %v: %s", <-ended, said.String())
			}
			left, err := os.ReadDir(spool)
			if code := quorate.ProcessState.ExitCode(); code != exitError || err != nil || len(left) > 0 {
				t.Errorf("exit code %d, left %v, %v: %s", code, left, err, said.String())
			}
			t.Logf("it ended after %s: %s", time.Since(told), said.String())
		})
	}
}

// testProgram returns the path of the test binary.
func testProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// stallAfter starts a proxy to the given address and returns the proxy's address. After the proxy has returned the
// given number of bytes to the client, it sends a value to the returned channel and stalls.
func stallAfter(t *testing.T, to string, most int64) (<-chan struct{}, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stalled := make(chan struct{}, 1)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					if n, _ := io.CopyN(in, out, most); n == most {
						stalled <- struct{}{}
					}
				}()
				_, _ = io.Copy(out, in)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return stalled, listener.Addr().String()
}

// verify verifies the backup that the result identifies.
func (j jobs) verify(more ...string) ran {
	var out, stderr bytes.Buffer
	args := append([]string{"backups", "verify", "ns/a", "--from", "file://" + j.store, "--result", j.result}, more...)
	code := execute(j.Context(), args, streams{out: &out, err: &stderr})
	return ran{code: code, out: out.String(), err: strings.Join(strings.Fields(stderr.String()), " ")}
}

// TestVerifyReadsBackupNamedInResult checks that the backup taken by the Job is verified, not a newer backup.
func TestVerifyReadsBackupNamedInResult(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	job, slot := thisMinute()
	if got := j.backUp(job); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	told, err := os.ReadFile(j.result)
	if err != nil {
		t.Fatal(err)
	}
	if got := j.backUp("by-hand"); got.code != exitOK { // takes a newer backup
		t.Fatalf("%+v", got)
	}
	if err := os.WriteFile(j.result, told, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := j.verify(); got.code != exitOK || !strings.Contains(got.out, store.SlotID(slot)+" is sound") {
		t.Errorf("%+v", got)
	}
	for _, b := range j.backups() {
		if b.Verified != b.Slot.Equal(slot) {
			t.Errorf("%s: verified %t", b.ID(), b.Verified)
		}
	}
	if got := j.verify("20261122t180000z"); got.code != exitInvalid {
		t.Errorf("another is named as well: %+v", got)
	}
	// The result is empty or names missing data.
	for text, want := range map[string]int{
		"": exitInvalid,
		strings.Replace(string(told), j.told().ClusterID, "00000000000000c9", 1): exitError,
	} {
		if err := os.WriteFile(j.result, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := j.verify(); got.code != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
