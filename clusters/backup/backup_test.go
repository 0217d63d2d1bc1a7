package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"filippo.io/age"

	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/etcd"
)

func sound(t testing.TB) *backuptest.Member {
	t.Helper()
	return backuptest.Sound(backuptest.MustSnapshot(t))
}

func inspect(_ context.Context, file string) (snapshot.Facts, error) { return snapshot.Inspect(file) }

func order(t testing.TB) Order {
	return Order{
		Cluster: store.Cluster{Namespace: "ns", Name: "a"}, Slot: time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC),
		Spool: t.TempDir(), Inspect: inspect,
	}
}

func TestTake(t *testing.T) {
	m := sound(t)
	taken, err := Take(t.Context(), m, order(t))
	if err != nil {
		t.Fatal(err)
	}
	s := taken.Manifest.Snapshot
	if s.Revision != backuptest.Revision || s.CompactRevision != 8 || s.ClusterVersion != "3.6.0" || m.Asked.Revision != backuptest.Revision || *s.Hash != m.Asked.Sum {
		t.Errorf("%+v, asked for %+v", s, m.Asked)
	}
	whole := backuptest.MustSnapshot(t)
	if sum := sha256.Sum256(whole); !slices.Equal(s.ProvenBy, m.Proof.By) || s.Bytes != int64(len(whole)) || s.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v", s)
	}
}

// TestTakeRejectsInvalidSnapshots checks that a snapshot that fails a check is rejected and leaves no files behind. A
// snapshot without proof is accepted and marked as unproven.
func TestTakeRejectsInvalidSnapshots(t *testing.T) {
	whole := backuptest.MustSnapshot(t)
	flipped := slices.Clone(whole)
	flipped[9000] ^= 4
	for name, c := range map[string]struct {
		member *backuptest.Member
		want   error
	}{
		"cut at the end":      {&backuptest.Member{Body: bytes.NewReader(whole[:len(whole)-1])}, snapshot.ErrTruncated},
		"cut at a page":       {&backuptest.Member{Body: bytes.NewReader(whole[:8192+32])}, snapshot.ErrChecksum},
		"nothing":             {&backuptest.Member{Body: bytes.NewReader(nil)}, snapshot.ErrTruncated},
		"flipped":             {&backuptest.Member{Body: bytes.NewReader(flipped)}, snapshot.ErrChecksum},
		"the stream breaks":   {&backuptest.Member{Body: io.MultiReader(bytes.NewReader(whole[:9000]), iotest.ErrReader(io.ErrUnexpectedEOF))}, io.ErrUnexpectedEOF},
		"older than was said": {&backuptest.Member{Body: bytes.NewReader(whole), Revision: backuptest.Revision + 1}, ErrOld},
		"others differ":       {&backuptest.Member{Body: bytes.NewReader(whole), Proof: etcd.Proof{Differs: []string{"a-0"}, Why: "0 of 3"}}, ErrDiffers},
	} {
		o := order(t)
		taken, err := Take(t.Context(), c.member, o)
		left, _ := os.ReadDir(o.Spool)
		if !errors.Is(err, c.want) || len(left) > 0 {
			t.Errorf("%s: %+v, %v; %d files are left", name, taken, err, len(left))
		}
	}
	unproven := sound(t)
	unproven.Proof = etcd.Proof{Why: "1 of 3 voters hold the same data"}
	if taken, err := Take(t.Context(), unproven, order(t)); err != nil || taken.Manifest.Snapshot.Unproven == "" {
		t.Errorf("%+v %v", taken, err)
	}
}

// sources is a cluster whose members are asked one after another.
type sources struct {
	*backuptest.Member // the member whose snapshot was sent last
	rest               []*backuptest.Member
	excepted           [][]string
}

func (s *sources) Snapshot(_ context.Context, except ...string) (*etcd.Snapshot, error) {
	s.excepted = append(s.excepted, slices.Clone(except))
	if len(s.rest) == 0 {
		return nil, errors.New("no other member responds")
	}
	s.Member, s.rest = s.rest[0], s.rest[1:]
	sent, err := s.Member.Snapshot(context.Background())
	sent.Member = fmt.Sprintf("a-%d", len(s.rest))
	return sent, err
}

// TestTakeAsksNextMember checks that a member whose data differs from a quorum's does not prevent a backup.
func TestTakeAsksNextMember(t *testing.T) {
	wrong := func() *backuptest.Member {
		m := sound(t)
		m.Proof = etcd.Proof{Differs: []string{"a-0", "a-1"}, Why: "1 of 3 voters hold the same data"}
		return m
	}
	from := &sources{rest: []*backuptest.Member{wrong(), sound(t)}}
	taken, err := Take(t.Context(), from, order(t))
	if err != nil || taken.Manifest.Member != "a-0" || !slices.Equal(from.excepted[1], []string{"a-1"}) {
		t.Errorf("%+v, %v; excepted %q", taken, err, from.excepted)
	}
	o := order(t)
	from = &sources{rest: []*backuptest.Member{wrong(), wrong()}}
	_, err = Take(t.Context(), from, o)
	if left, _ := os.ReadDir(o.Spool); !errors.Is(err, ErrDiffers) || len(from.excepted) != 3 || len(left) > 0 {
		t.Errorf("%v; excepted %q; %d files are left", err, from.excepted, len(left))
	}
}

// TestInspectFindsDamage checks that Inspect reports invalid content as damage, and does not crash this process, even
// if the checksum was changed to match.
func TestInspectFindsDamage(t *testing.T) {
	whole := backuptest.MustSnapshot(t)
	for _, c := range []struct {
		name  string
		spoil func([]byte) []byte
	}{
		{"no database", func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) }},
		{"no pages", func(b []byte) []byte { return b[:0] }},
		{"one page", func(b []byte) []byte { return b[:4096] }},
		{"less than two pages", func(b []byte) []byte { return b[:8191] }},
		{"half of it", func(b []byte) []byte { return b[:8192] }},
	} {
		file := filepath.Join(t.TempDir(), "s.db")
		if err := os.WriteFile(file, c.spoil(slices.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		if facts, err := snapshot.Inspect(file); !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("%s: %+v, %v", c.name, facts, err)
		}
	}
}

// encodings returns all encodings of a backup, with the identities that can decrypt them.
func encodings(t testing.TB) map[string]struct {
	Encoding
	identity age.Identity
} {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	recipients := []age.Recipient{identity.Recipient()}
	return map[string]struct {
		Encoding
		identity age.Identity
	}{
		"plain":      {Encoding{}, nil},
		"compressed": {Encoding{Compress: true}, nil},
		"encrypted":  {Encoding{Recipients: recipients}, identity},
		"both":       {Encoding{Compress: true, Recipients: recipients}, identity},
	}
}

func bucketIn(t testing.TB, dir string) store.Bucket {
	t.Helper()
	b, err := store.Location{Directory: dir}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func stored(t testing.TB, b store.Bucket, o Order) store.Manifest {
	t.Helper()
	taken, err := Take(t.Context(), sound(t), o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := taken.Store(t.Context(), b, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func reading(identity age.Identity) Reading {
	r := Reading{Inspect: inspect}
	if identity != nil {
		r.Identities = []age.Identity{identity}
	}
	return r
}

func TestEncodings(t *testing.T) {
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range encodings(t) {
		b, o := bucketIn(t, t.TempDir()), order(t)
		o.Encoding = e.Encoding
		m := stored(t, b, o)
		file := filepath.Join(t.TempDir(), "s.db")
		if _, err := Fetch(t.Context(), b, m, file, reading(e.identity)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, _ := os.ReadFile(file); !bytes.Equal(got, backuptest.MustSnapshot(t)) {
			t.Errorf("%s: it differs from the sent data", name)
		}
		if _, err := Fetch(t.Context(), b, m, file, reading(e.identity)); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: it replaced a file: %v", name, err)
		}
		saved := filepath.Join(t.TempDir(), "saved")
		taken, err := Take(t.Context(), sound(t), o)
		if err == nil {
			err = taken.Save(t.Context(), saved, o)
		}
		if err != nil {
			t.Fatal(err)
		}
		decoded := filepath.Join(t.TempDir(), "s.db")
		if facts, err := Decode(t.Context(), saved, decoded, reading(e.identity)); err != nil || facts.Revision != backuptest.Revision {
			t.Errorf("%s: %+v, %v", name, facts, err)
		}
		if e.identity == nil {
			continue
		}
		for why, identity := range map[string]age.Identity{"no identity was given": nil, "none of the given identities": stranger} {
			found, err := Verify(t.Context(), b, m, t.TempDir(), reading(identity))
			if !errors.Is(err, ErrEncrypted) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "identitySecretName") || found.Damage != "" {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
			if _, err := Decode(t.Context(), saved, filepath.Join(t.TempDir(), "s.db"), reading(identity)); !errors.Is(err, ErrEncrypted) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestVerifyFindsDamage checks that changed, missing or additional bytes in the stored data are detected.
func TestVerifyFindsDamage(t *testing.T) {
	for name, e := range encodings(t) {
		dir := t.TempDir()
		b, o := bucketIn(t, dir), order(t)
		o.Encoding = e.Encoding
		m := stored(t, b, o)
		path := filepath.Join(dir, filepath.FromSlash(m.DataPath()))
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		verify := func(what string, content []byte, damaged bool) {
			t.Helper()
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := Verify(t.Context(), b, m, t.TempDir(), reading(e.identity))
			if err != nil || (found.Damage != "") != damaged {
				t.Errorf("%s, %s: %+v, %v", name, what, found, err)
			}
		}
		verify("whole", whole, false)
		for at := 0; at < len(whole); at += max(1, len(whole)/40) {
			spoiled := slices.Clone(whole)
			spoiled[at] ^= 0x40
			if e.identity != nil && at < 250 { // the backup then appears to be encrypted to an unknown recipient
				continue
			}
			verify(fmt.Sprint("flipped at ", at), spoiled, true)
		}
		verify("cut", whole[:len(whole)-1], true)
		verify("longer", append(slices.Clone(whole), 'x'), true)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if found, err := Verify(t.Context(), b, m, t.TempDir(), reading(e.identity)); err != nil || found.Damage == "" {
			t.Errorf("%s, gone: %+v, %v", name, found, err)
		}
	}
}

// faulty is a bucket in which the nth call fails.
type faulty struct {
	store.Bucket
	left int
	// after makes the failing call take effect even though it returns an error.
	after bool
}

var errCut = errors.New("the connection was cut")

func (f *faulty) call(carryOut func() error) error {
	f.left--
	if f.left == 0 && !f.after {
		return errCut
	}
	err := carryOut()
	if f.left == 0 {
		return errCut
	}
	return err
}

func (f *faulty) Create(ctx context.Context, name string, r io.Reader) error {
	return f.call(func() error { return f.Bucket.Create(ctx, name, r) })
}

func (f *faulty) Size(ctx context.Context, name string) (size int64, err error) {
	err = f.call(func() error { size, err = f.Bucket.Size(ctx, name); return err })
	return size, err
}

func (f *faulty) Delete(ctx context.Context, name string) error {
	return f.call(func() error { return f.Bucket.Delete(ctx, name) })
}

func (f *faulty) Open(ctx context.Context, name string) (r io.ReadCloser, err error) {
	err = f.call(func() error { r, err = f.Bucket.Open(ctx, name); return err })
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(r, 3000), iotest.ErrReader(errCut)), r}, nil
}

// TestInterruptedStoreCanBeRepeated checks that, no matter where storing is interrupted, the backup either exists
// completely or not at all, and that the next attempt for the same slot completes it.
func TestInterruptedStoreCanBeRepeated(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 4; n++ {
			b, o := bucketIn(t, t.TempDir()), order(t)
			taken, err := Take(t.Context(), sound(t), o)
			if err != nil {
				t.Fatal(err)
			}
			_, failed := taken.Store(t.Context(), &faulty{Bucket: b, left: n, after: after}, o)
			if !errors.Is(failed, errCut) {
				t.Errorf("%d: %v", n, failed)
			}
			listing, err := store.List(t.Context(), b, o.Cluster)
			if err != nil || len(listing.Backups) > 1 || len(listing.Backups) == 1 && !(after && n == 4) {
				t.Errorf("%d %v: %+v %v", n, after, listing, err)
			}
			m := stored(t, b, o)
			if found, err := Verify(t.Context(), b, m, t.TempDir(), reading(nil)); err != nil || found.Damage != "" {
				t.Errorf("%d: %+v %v", n, found, err)
			}
			if listing, _ := store.List(t.Context(), b, o.Cluster); len(listing.Backups) != 1 {
				t.Errorf("%d: %+v", n, listing)
			}
		}
	}
}

// TestUnreadableStoreIsNotDamage checks that a backup is not reported as damaged if the store cannot be read or the
// disk is full.
func TestUnreadableStoreIsNotDamage(t *testing.T) {
	for name, e := range encodings(t) {
		b, o := bucketIn(t, t.TempDir()), order(t)
		o.Encoding = e.Encoding
		m := stored(t, b, o)
		if m.Bytes > 3000 { // faulty truncates the data there
			if found, err := Verify(t.Context(), &faulty{Bucket: b}, m, t.TempDir(), reading(e.identity)); !errors.Is(err, errCut) || found.Damage != "" {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip("no /dev/full")
		}
		defer full.Close()
		if err := fetch(t.Context(), b, m, full, reading(e.identity)); err == nil || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTimeoutIsNotDamage checks that a backup is not reported as damaged after a timeout.
func TestTimeoutIsNotDamage(t *testing.T) {
	errLate := errors.New("it took too long")
	for name, e := range encodings(t) {
		dir := t.TempDir()
		b, o := bucketIn(t, dir), order(t)
		o.Encoding = e.Encoding
		m := stored(t, b, o)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		r := reading(e.identity)
		r.Progress = func(string, int64, int64) { cancel(errLate) }
		if found, err := Verify(ctx, b, m, t.TempDir(), r); !errors.Is(err, errLate) || found.Damage != "" {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		ctx, cancel = context.WithCancelCause(t.Context())
		defer cancel(nil)
		data := filepath.Join(dir, filepath.FromSlash(m.DataPath()))
		if _, err := Decode(ctx, data, filepath.Join(t.TempDir(), "s.db"), r); !errors.Is(err, errLate) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSpoolDamagedAfterProofIsNotStored checks that a snapshot is not stored if it has been damaged on disk since it
// was proven.
func TestSpoolDamagedAfterProofIsNotStored(t *testing.T) {
	for name, e := range encodings(t) {
		b, o := bucketIn(t, t.TempDir()), order(t)
		o.Encoding = e.Encoding
		taken, err := Take(t.Context(), sound(t), o)
		if err == nil {
			err = os.Truncate(taken.File, 8192)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m, err := taken.Store(t.Context(), b, o); err == nil {
			t.Errorf("%s: stored %+v", name, m)
		}
		file := filepath.Join(t.TempDir(), "s.db")
		if err := taken.Save(t.Context(), file, o); err == nil {
			t.Errorf("%s: saved", name)
		}
		left, _ := os.ReadDir(filepath.Dir(file))
		if listing, err := store.List(t.Context(), b, o.Cluster); err != nil || len(listing.Backups)+len(listing.Data)+len(left) > 0 {
			t.Errorf("%s: %+v %v, %d files", name, listing, err, len(left))
		}
	}
}

// endless is a reader that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestSizeLimitsAreEnforced checks that neither a member, a file nor a manifest can fill the disk.
func TestSizeLimitsAreEnforced(t *testing.T) {
	o := order(t)
	o.MaxBytes = 1 << 20
	if taken, err := Take(t.Context(), &backuptest.Member{Body: endless{}}, o); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%+v %v", taken, err)
	}
	bomb := filepath.Join(t.TempDir(), "bomb")
	packed, err := os.Create(bomb)
	if err == nil {
		err = errors.Join((Encoding{Compress: true}).encode(packed, io.LimitReader(endless{}, 8<<20)), packed.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	r := reading(nil)
	r.MaxBytes = 1 << 20
	if _, err := Decode(t.Context(), bomb, filepath.Join(t.TempDir(), "s.db"), r); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	b := bucketIn(t, t.TempDir())
	m := stored(t, b, order(t))
	r.MaxBytes = 512
	if _, err := Fetch(t.Context(), b, m, filepath.Join(t.TempDir(), "s.db"), r); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// TestFailedInspectionIsNotDamage checks that an intact backup is not reported as damaged if this machine cannot
// inspect it.
func TestFailedInspectionIsNotDamage(t *testing.T) {
	b := bucketIn(t, t.TempDir())
	m := stored(t, b, order(t))
	r := reading(nil)
	r.Inspect = func(context.Context, string) (snapshot.Facts, error) {
		return snapshot.Facts{}, fmt.Errorf("%w: cannot allocate memory", snapshot.ErrDamaged)
	}
	if found, err := Verify(t.Context(), b, m, t.TempDir(), r); err == nil || errors.Is(err, ErrDamaged) || found.Damage != "" {
		t.Errorf("%+v %v", found, err)
	}
}

// TestConcurrentBackupsOfSlotLeaveOne checks that concurrent backups of one slot leave a single backup, and only the
// data of that backup.
func TestConcurrentBackupsOfSlotLeaveOne(t *testing.T) {
	b, o := bucketIn(t, t.TempDir()), order(t)
	results := make(chan string, 8)
	for range cap(results) {
		go func() {
			taken, err := Take(t.Context(), sound(t), o)
			if err != nil {
				results <- err.Error()
				return
			}
			m, err := taken.Store(t.Context(), b, o)
			results <- fmt.Sprint(m.Data, err)
		}()
	}
	one := <-results
	for range cap(results) - 1 {
		if other := <-results; other != one {
			t.Errorf("%s and %s", one, other)
		}
	}
	if listing, err := store.List(t.Context(), b, o.Cluster); err != nil || len(listing.Backups) != 1 || len(listing.Data) != 1 {
		t.Errorf("%+v %v", listing, err)
	}
}

// TestFreshBackupUsesNewSlot checks that Store never returns an earlier backup of the same second in place of a fresh
// backup.
func TestFreshBackupUsesNewSlot(t *testing.T) {
	b, o := bucketIn(t, t.TempDir()), order(t)
	o.Fresh = true
	first, second := stored(t, b, o), stored(t, b, o)
	if !second.Slot.Equal(first.Slot.Add(time.Second)) || first.Data == second.Data {
		t.Errorf("%+v and %+v", first, second)
	}
}

// TestManifestCommandsReadBackup runs the commands from the manifest verbatim, with only age, zstd and etcdutl.
func TestManifestCommandsReadBackup(t *testing.T) {
	tools := os.Getenv("QUORATE_ETCD_DIR")
	if tools == "" {
		t.Skip("QUORATE_ETCD_DIR does not name a directory with etcdutl; make test sets it")
	}
	if _, err := exec.LookPath("zstd"); err != nil {
		t.Skip("no zstd")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(bin, "age"), "filippo.io/age/cmd/age").CombinedOutput(); err != nil {
		t.Fatalf("build age: %v\n%s", err, out)
	}
	tools, err := filepath.Abs(tools)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", strings.Join([]string{bin, tools, os.Getenv("PATH")}, ":"))
	for name, e := range encodings(t) {
		dir := t.TempDir()
		b, o := bucketIn(t, dir), order(t)
		o.Encoding = e.Encoding
		m := stored(t, b, o)
		beside := filepath.Dir(filepath.Join(dir, filepath.FromSlash(m.DataPath())))
		if identity, is := e.identity.(*age.X25519Identity); is {
			if err := os.WriteFile(filepath.Join(beside, "KEY"), []byte(identity.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range m.Read {
			command := exec.Command("sh", "-ec", step)
			command.Dir = beside
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %s: %v\n%s", name, step, err, out)
			}
			if strings.Contains(step, "status") && !strings.Contains(string(out), fmt.Sprintf(", %d,", backuptest.Revision)) {
				t.Errorf("%s: %s", name, out)
			}
		}
		if _, err := os.Stat(filepath.Join(beside, "default.etcd", "member")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
