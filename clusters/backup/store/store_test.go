package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/internal/printable"
)

// eachBucket runs a test with every available kind of bucket.
func eachBucket(t *testing.T, test func(t *testing.T, b Bucket)) {
	t.Run("directory", func(t *testing.T) { test(t, directory{t.TempDir()}) })
	t.Run("objects", func(t *testing.T) {
		all := memblob.OpenBucket(nil)
		t.Cleanup(func() { all.Close() })
		other := objects{bucket: all, prefix: "other/", code: gcerrors.Code}
		if err := other.Create(t.Context(), "ns/a/x", strings.NewReader("somebody else's")); err != nil {
			t.Fatal(err)
		}
		test(t, objects{bucket: all, prefix: "ours/", code: gcerrors.Code})
	})
	t.Run("s3", func(t *testing.T) { b, _ := versitygw(t); test(t, b) })
	t.Run("gs", func(t *testing.T) { b, _ := gcs(t); test(t, b) })
	t.Run("azblob", func(t *testing.T) { b, _ := azure(t); test(t, b) })
	t.Run("azurite", func(t *testing.T) { test(t, azurite(t)) })
}

func content(t *testing.T, b Bucket, name string) string {
	t.Helper()
	r, err := b.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBucket(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		ctx := t.Context()
		for _, name := range []string{"ns/a/1", "ns/a/2", "ns/ab/1"} {
			if err := b.Create(ctx, name, strings.NewReader(name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Create(ctx, "ns/a/1", strings.NewReader("again")); !errors.Is(err, ErrExists) || content(t, b, "ns/a/1") != "ns/a/1" {
			t.Errorf("create again: %v", err)
		}
		if err := b.Replace(ctx, "ns/a/2", strings.NewReader("new")); err != nil || content(t, b, "ns/a/2") != "new" {
			t.Errorf("replace: %v", err)
		}
		names, err := b.List(ctx, "ns/a/")
		if want := []string{"ns/a/1", "ns/a/2"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("list: %q, %v", names, err)
		}
		if size, err := b.Size(ctx, "ns/a/2"); size != 3 || err != nil {
			t.Errorf("size: %d, %v", size, err)
		}
		if err := b.Delete(ctx, "ns/a/2"); err != nil {
			t.Error(err)
		}
		_, opened := b.Open(ctx, "ns/a/2")
		_, sized := b.Size(ctx, "ns/a/2")
		for what, err := range map[string]error{"delete": b.Delete(ctx, "ns/a/2"), "open": opened, "size": sized} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%s a missing object: %v", what, err)
			}
		}
	})
}

// TestInterruptedUploadLeavesNothing checks that an interrupted upload does not leave anything behind under any name.
func TestInterruptedUploadLeavesNothing(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		broken := io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000)), iotest.ErrReader(errors.New("cut")))
		if err := b.Create(t.Context(), "ns/a/1", broken); err == nil {
			t.Error("it was stored")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Create(ctx, "ns/a/2", strings.NewReader("x")); err == nil {
			t.Error("it was stored after the end")
		}
		if names, err := b.List(t.Context(), ""); len(names) > 0 || err != nil {
			t.Errorf("%q %v", names, err)
		}
		if d, is := b.(directory); is {
			files, _ := filepath.Glob(filepath.Join(d.root, "ns", "a", "*"))
			hidden, _ := filepath.Glob(filepath.Join(d.root, "ns", "a", ".*"))
			if len(files)+len(hidden) > 0 {
				t.Errorf("%q %q", files, hidden)
			}
		}
	})
}

// TestOnlyOneConcurrentCreateSucceeds checks that only one of many concurrent attempts to create the same name
// succeeds.
func TestOnlyOneConcurrentCreateSucceeds(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				err := b.Create(t.Context(), "ns/a/1", strings.NewReader(fmt.Sprint(i)))
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, ErrExists) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d created it", won.Load())
		}
	})
}

// TestUnreadableDirectoryIsNotEmpty checks that an unreadable directory is not treated as empty.
func TestUnreadableDirectoryIsNotEmpty(t *testing.T) {
	if _, err := (directory{filepath.Join(t.TempDir(), "gone")}).List(t.Context(), ""); err == nil {
		t.Error("a missing object was listed")
	}
	if _, err := (Location{Directory: filepath.Join(t.TempDir(), "gone")}).Open(t.Context(), Options{}); err == nil {
		t.Error("a missing object was opened")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if names, err := (directory{t.TempDir()}).List(ctx, ""); err == nil {
		t.Errorf("listed %q after the end", names)
	}
}

func TestDirectoryRejectsOutsideNames(t *testing.T) {
	d := directory{t.TempDir()}
	for _, name := range []string{"../x", "/etc/passwd", "", ".", "a/../../x", "a//b"} {
		if err := d.Create(t.Context(), name, strings.NewReader("x")); err == nil {
			t.Errorf("%q was created", name)
		}
		if _, err := d.Open(t.Context(), name); err == nil {
			t.Errorf("%q was opened", name)
		}
	}
}

// TestDirectoryWithLinkIsNotListed checks that a store can be used through a link, but that a store that contains a
// link cannot be listed. Neither is treated as empty. Files that do not belong to the store are harmless.
func TestDirectoryWithLinkIsNotListed(t *testing.T) {
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Symlink(real, link), os.Mkdir(filepath.Join(real, "lost+found"), 0)); err != nil {
		t.Fatal(err)
	}
	b, err := Location{Directory: link}.Open(t.Context(), Options{})
	if err == nil {
		err = b.Create(t.Context(), "ns/a/1", strings.NewReader("x"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if names, err := b.List(t.Context(), ""); !slices.Equal(names, []string{"ns/a/1"}) || err != nil {
		t.Errorf("%q %v", names, err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(real, "other")); err != nil {
		t.Fatal(err)
	}
	if names, err := b.List(t.Context(), ""); err == nil {
		t.Errorf("%q", names)
	}
}

func TestCheckEndpoint(t *testing.T) {
	for _, endpoint := range []string{"http://user:secret@host", "https://host?key=secret", "http://user:secret PW@x%zz", "secret", "ftp://secret"} {
		if err := checkEndpoint(endpoint); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	if err := checkEndpoint("https://127.0.0.1:9000/s3"); err != nil {
		t.Error(err)
	}
}

func TestParseLocation(t *testing.T) {
	for text, want := range map[string]Location{
		"file:///srv/backups":  {Directory: "/srv/backups"},
		"file:///srv/b/../c/":  {Directory: "/srv/c"},
		"s3://bucket":          {Scheme: "s3", Bucket: "bucket"},
		"s3://bucket/a/b":      {Scheme: "s3", Bucket: "bucket", Prefix: "a/b/"},
		"s3://bucket//a/b///":  {Scheme: "s3", Bucket: "bucket", Prefix: "a/b/"},
		"s3://bucket/p%20q":    {Scheme: "s3", Bucket: "bucket", Prefix: "p q/"},
		"gs://my_bucket/a":     {Scheme: "gs", Bucket: "my_bucket", Prefix: "a/"},
		"azblob://container":   {Scheme: "azblob", Bucket: "container"},
		"azblob://$root/a/b":   {Scheme: "azblob", Bucket: "$root", Prefix: "a/b/"},
		"s3://my-bucket.x/a/b": {Scheme: "s3", Bucket: "my-bucket.x", Prefix: "a/b/"},
	} {
		if got, err := ParseLocation(text); got != want || err != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"file://host/srv", "file:srv", "s3://", "s3:///x", "ftp://b", "gs://", "gs://b:80/x", "gs://b?anonymous=true", "azblob://c?domain=evil", "azblob://../x", "azblob://a%20b/x", "gs://KEY:secret@b", "http://b/x", "s3://key:secret@bucket", "s3://KEY:wJal/secret@bucket", "s3://b?secret=x", "s3:K:secret@b://x", "s3://AKIA:12345/secret", "s3://bucket?endpoint=http://evil",
		"s3://bucket?", "s3://bucket#x", "s3://bucket:80/x", "mem://", "://", "s3://%zz",
	} {
		if got, err := ParseLocation(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// TestLocationWithEndpointIsRefused checks that a location copied from the status, which may include an endpoint, an
// AWS partition or an account, is refused instead of being read as a prefix. Otherwise, commands would use a different
// store. The error must not repeat the URL, which may contain credentials instead of a bucket and a prefix.
func TestLocationWithEndpointIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"s3://backups/etcd@http://10.88.0.1:9000":        "remove @ and everything after it, and use --s3-endpoint http://10.88.0.1:9000",
		"s3://backups@http://10.88.0.1:9000":             "remove @ and everything after it, and use --s3-endpoint http://10.88.0.1:9000",
		"s3://backups/etcd@aws-cn":                       "remove @ and everything after it, and use --s3-region with a region in partition aws-cn",
		"s3://backups@aws-us-gov":                        "remove @ and everything after it, and use --s3-region with a region in partition aws-us-gov",
		"s3://backups/etcd@10.88.0.1:9000":               "set the endpoint with --s3-endpoint",
		"s3://backups/etcd@http://u:secret@10.88.0.1":    "set the endpoint with --s3-endpoint",
		"s3://backups/secret@bucket":                     "set the endpoint with --s3-endpoint",
		"S3://backups/etcd@http://10.88.0.1:9000":        "use --s3-endpoint http://10.88.0.1:9000",
		"s3://AKIA/secret@http://10.88.0.1:9000":         "use --s3-endpoint http://10.88.0.1:9000",
		"s3://AKIA/secret@aws-cn":                        "use --s3-region with a region in partition aws-cn",
		"gs://backups/etcd@https://storage.example":      "remove @ and everything after it, and use --gcs-endpoint https://storage.example",
		"azblob://backups@https://a.example":             "remove @ and everything after it, and use --azure-endpoint https://a.example",
		"azblob://b/etcd@https://a.example of account a": "remove @ and everything after it, and use --azure-endpoint https://a.example and AZURE_STORAGE_ACCOUNT=a",
	} {
		_, err := ParseLocation(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got, err := ParseLocation("s3://bucket/a%40b"); err != nil || got.Prefix != "a@b/" {
		t.Errorf("an escaped @: %+v, %v", got, err)
	}
	if got, err := ParseLocation("file:///srv/a@http"); err != nil || got.Directory != "/srv/a@http" {
		t.Errorf("a directory: %+v, %v", got, err)
	}
}

func slot(text string) time.Time {
	at, err := ParseSlot(text)
	if err != nil {
		panic(err)
	}
	return at
}

const id, otherID = "00000000000000aa", "00000000000000bb"

// TestRead checks that backups are derived from the names in a store, and that unknown names are ignored.
func TestRead(t *testing.T) {
	one := "ns/a/" + id + "/20261122t180000z"
	got := read([]string{
		one + ".json", one + ".verified.json", one + "-7-0123abcd.db.zst",
		"ns/a/" + id + "/20261122t190000z.suspect.json",
		"ns/a/" + id + "/20261122t190000z-9-0123abcd.db",
		"ns/a/" + otherID + "/20261121t190000z.json", "ns/a/" + otherID + "/20261121t190000z.damaged.json",
		"ns/a/" + id + "/20261122t200000z.verified.json", // its manifest is gone
		"ns/a/" + id + "/20269922t200000z.json",          // not a valid time
		"ns/a/" + id + "/x/20261122t200000z.json", "ns/A/" + id + "/20261122t200000z.json", "ns/a/aa/20261122t200000z.json", "readme.md",
		"ns/a/" + id + "/20261122t200000z-9-0123abcd.db.exe",
	})
	c := Cluster{"ns", "a"}
	want := []Backup{
		{Cluster: c, ClusterID: id, Slot: slot("20261122t180000z"), Verified: true},
		{Cluster: c, ClusterID: id, Slot: slot("20261122t190000z"), Suspect: true},
		{Cluster: c, ClusterID: otherID, Slot: slot("20261121t190000z"), Damaged: true},
	}
	if !slices.Equal(got.Backups, want) || len(got.Data) != 2 {
		t.Errorf("%+v", got)
	}
	if revisions := got.Revisions(); len(revisions) != 2 || revisions[want[0]] != 7 || revisions[want[1]] != 9 {
		t.Errorf("revisions %v", revisions)
	}
	tried := read([]string{one + ".json", one + "-7-0123abcd.db.zst", one + "-7-1123abcd.db.zst"})
	if revisions := tried.Revisions(); revisions[tried.Backups[0]] != 7 {
		t.Errorf("two attempts at one revision: %v", revisions)
	}
	tried = read([]string{one + ".json", one + "-7-0123abcd.db.zst", one + "-8-1123abcd.db.zst"})
	if revisions := tried.Revisions(); len(revisions) != 0 {
		t.Errorf("two attempts at two revisions: %v", revisions)
	}
	both := read([]string{one + ".json", one + ".suspect.json", one + ".suspect.damaged.json"})
	if len(both.Backups) != 2 || len(both.At(slot("20261122t180000z"))) != 1 || !both.At(slot("20261122t180000z"))[0].Good() {
		t.Errorf("a good backup and a suspect one: %+v", both)
	}
	if newest, some := got.Newest(); !some || newest != want[0] {
		t.Errorf("the newest is %+v", newest)
	}
}

func manifest() Manifest {
	m := Manifest{
		Format: Format, Namespace: "ns", Cluster: "a", ClusterID: id, Slot: slot("20261122t180000z"),
		Bytes: 3, SHA256: strings.Repeat("ab", 32),
		Snapshot: Snapshot{Bytes: 3, SHA256: strings.Repeat("cd", 32), Facts: snapshot.Facts{Revision: 7}},
	}
	m.Data = m.NewDataName()
	return m
}

// listAndRemove deletes a backup and all its marks.
func listAndRemove(b Bucket, m Manifest) error {
	listing, err := List(context.Background(), b, Cluster{})
	if err != nil {
		return err
	}
	return listing.Remove(context.Background(), b, m)
}

// TestManifest checks that the first manifest of a slot is kept, and that a manifest for a different backup is
// rejected.
func TestManifest(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		m := manifest()
		if got, err := m.Commit(t.Context(), b); err != nil || got.Data != m.Data {
			t.Fatalf("%+v %v", got, err)
		}
		later := manifest()
		if got, err := later.Commit(t.Context(), b); err != nil || got.Data != m.Data || later.Data == m.Data {
			t.Errorf("%+v %v", got, err)
		}
		for what, spoil := range map[string]func(*Manifest){
			"another cluster":   func(m *Manifest) { m.Cluster = "b" },
			"another namespace": func(m *Manifest) { m.Namespace = "other" },
			"another ID":        func(m *Manifest) { m.ClusterID = otherID },
			"another slot":      func(m *Manifest) { m.Slot = m.Slot.Add(time.Second) },
			"part of a second":  func(m *Manifest) { m.Slot = m.Slot.Add(time.Millisecond) },
			"data elsewhere":    func(m *Manifest) { m.Data = "../" + m.Data },
			"data of a slot":    func(m *Manifest) { m.Data = "20261122t190000z-7-0123abcd.db" },
			"no size":           func(m *Manifest) { m.Bytes = 0 },
			"no checksum":       func(m *Manifest) { m.SHA256 = "" },
			"an odd encoding":   func(m *Manifest) { m.Compression = "gzip" },
			"hidden suspicion":  func(m *Manifest) { m.Snapshot.Alarms = []string{"CORRUPT 1"} },
			"another format":    func(m *Manifest) { m.Format = "quorate.dev/backup/v2" },
		} {
			spoiled := manifest()
			spoil(&spoiled)
			text := encoded(t, spoiled)
			if err := b.Replace(t.Context(), m.Backup().manifestName(), bytes.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			got, err := ReadManifest(t.Context(), b, m.Backup())
			if newer := what == "an odd encoding" || what == "another format"; !errors.Is(err, ErrManifest) || errors.Is(err, ErrFormat) != newer {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		}
		for what, text := range map[string]string{"no JSON": "{", "too long": "{" + strings.Repeat(" ", maxManifest) + "}"} {
			if err := b.Replace(t.Context(), m.Backup().manifestName(), strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			if got, err := ReadManifest(t.Context(), b, m.Backup()); err == nil {
				t.Errorf("%s: %+v", what, got)
			}
		}
	})
}

// TestRemove checks that the manifest is deleted first, followed by all other objects of the backup.
func TestRemove(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		m := manifest()
		if err := b.Create(t.Context(), m.DataPath(), strings.NewReader("abc")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		for _, damage := range []string{"x", ""} {
			v, err := BeginVerification(t.Context(), b, m)
			if err != nil {
				t.Fatal(err)
			}
			v.Damage = damage
			if err := v.Record(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			listing, err := List(t.Context(), b, Cluster{"ns", "a"})
			if err != nil || len(listing.Backups) != 1 || listing.Backups[0].Verified == (damage != "") || listing.Backups[0].Damaged != (damage != "") {
				t.Errorf("%+v %v", listing, err)
			}
		}
		recorded := &recording{Bucket: b}
		if err := listAndRemove(recorded, m); err != nil {
			t.Error(err)
		}
		if names, _ := b.List(t.Context(), ""); len(names) > 0 || recorded.deleted[0] != m.Backup().manifestName() || recorded.deleted[len(recorded.deleted)-1] != m.DataPath() {
			t.Errorf("%q is left, deleted were %q", names, recorded.deleted)
		}
	})
}

// TestListingRemoveDoesNotListAgain checks that all objects of a listed backup are removed without listing them again,
// and that objects of other backups are kept.
func TestListingRemoveDoesNotListAgain(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		m, suspect := manifest(), manifest()
		suspect.Snapshot.Alarms = []string{"CORRUPT 1"}
		for _, m := range []Manifest{m, suspect} {
			if err := b.Create(t.Context(), m.DataPath(), strings.NewReader("abc")); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			for _, mark := range m.Backup().markNames() {
				if err := b.Create(t.Context(), mark, strings.NewReader("{}")); err != nil {
					t.Fatal(err)
				}
			}
		}
		listing, err := List(t.Context(), b, Cluster{"ns", "a"})
		if err != nil || len(listing.Backups) != 2 {
			t.Fatalf("%+v %v", listing, err)
		}
		recorded := &recording{Bucket: unlisted{b}}
		if err := listing.Remove(t.Context(), recorded, m); err != nil {
			t.Error(err)
		}
		left, err := b.List(t.Context(), "")
		if err != nil || len(left) != 6 || slices.ContainsFunc(left, func(name string) bool { return name != suspect.DataPath() && !strings.Contains(name, ".suspect.") }) {
			t.Errorf("%q is left, %v", left, err)
		}
		if n := len(recorded.deleted); n != 6 || recorded.deleted[0] != m.Backup().manifestName() || recorded.deleted[n-2] != m.Backup().damagedName() ||
			recorded.deleted[n-1] != m.DataPath() {
			t.Errorf("deleted were %q", recorded.deleted)
		}
	})
}

// unlisted is a bucket that fails if it is listed.
type unlisted struct{ Bucket }

func (unlisted) List(context.Context, string) ([]string, error) {
	return nil, errors.New("it was listed again")
}

// TestConcurrentDamageOverridesVerification checks that a good result does not override damage that another process has
// found since the verification began, and that damage overrides earlier good results.
func TestConcurrentDamageOverridesVerification(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		m := manifest()
		if _, err := m.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		begin := func() Verification {
			v, err := BeginVerification(t.Context(), b, m)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		state := func() Backup {
			listing, err := List(t.Context(), b, Cluster{"ns", "a"})
			if err != nil || len(listing.Backups) != 1 {
				t.Fatalf("%+v %v", listing, err)
			}
			return listing.Backups[0]
		}
		if err := (Drill{Verification: begin()}).Record(t.Context(), b); err != nil || !state().Drilled {
			t.Fatalf("%+v %v", state(), err)
		}
		slow, quick := begin(), begin()
		quick.Damage = "it is"
		if err := quick.Record(t.Context(), b); err != nil || !state().Damaged || state().Verified || state().Drilled {
			t.Fatalf("%+v %v", state(), err)
		}
		if err := (Drill{Verification: slow}).Record(t.Context(), b); !errors.Is(err, ErrOvertaken) || !state().Damaged || state().Verified || state().Drilled {
			t.Errorf("%+v %v", state(), err)
		}
		later := begin()
		if err := later.Record(t.Context(), b); err != nil || state().Damaged || !state().Verified {
			t.Errorf("%+v %v", state(), err)
		}
		// Damage also overrides a good result if it is recorded just after the slow process has checked for damage.
		slow, quick = begin(), begin()
		quick.Damage = "it is"
		if err := slow.Record(t.Context(), meanwhile{b, func() error { return quick.Record(t.Context(), b) }}); err != nil || !state().Damaged {
			t.Errorf("%+v %v", state(), err)
		}
	})
}

// TestVerificationKeepsFailedDrill checks that a backup whose restore drill failed counts as verified only once a drill
// of it succeeds, also in a store that does not allow deletion. It stays usable.
func TestVerificationKeepsFailedDrill(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		m := manifest()
		if err := b.Create(t.Context(), m.DataPath(), strings.NewReader("abc")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		begin := func() Verification {
			v, err := BeginVerification(t.Context(), b, m)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		require := func(what string, err, want error, verified bool) {
			t.Helper()
			listing, unknown := List(t.Context(), b, Cluster{"ns", "a"})
			if unknown != nil || len(listing.Backups) != 1 {
				t.Fatalf("%s: %+v %v", what, listing, unknown)
			}
			is, confirmed := listing.Backups[0], Confirm(t.Context(), b, m.Backup())
			if !errors.Is(err, want) || is.Damaged || is.Verified != verified || is.Drilled && !verified || is.Differs == verified ||
				(confirmed == nil) != verified || !verified && !errors.Is(confirmed, ErrDiffered) {
				t.Errorf("%s: %+v, %v, confirm: %v", what, is, err, confirmed)
			}
		}
		require("drill", Drill{Verification: begin()}.Record(t.Context(), b), nil, true)
		slow := begin()
		require("failure", begin().RecordDifference(t.Context(), fixed{keeping{b}}), nil, false)
		require("failure again", begin().RecordDifference(t.Context(), fixed{keeping{b}}), nil, false)
		require("verification", begin().Record(t.Context(), b), ErrDiffered, false)
		require("verification that began before", slow.Record(t.Context(), b), ErrDiffered, false)
		require("drill that began before", Drill{Verification: slow}.Record(t.Context(), b), ErrDiffered, false)
		if _, err := ReadUseful(t.Context(), b, m.Backup()); err != nil {
			t.Errorf("it is not usable: %v", err)
		}
		damaged := begin()
		damaged.Damage = "it is"
		if err := damaged.Record(t.Context(), b); err != nil {
			t.Error(err)
		}
		require("verification of a damaged one", begin().Record(t.Context(), b), ErrDiffered, false)
		require("drill without the right to delete", Drill{Verification: begin()}.Record(t.Context(), keeping{b}), ErrHeld, false)
		require("drill in another process", Drill{Verification: begin().Pending().Resume()}.Record(t.Context(), b), nil, true)
		require("verification after it", begin().Record(t.Context(), b), nil, true)
	})
}

// meanwhile is a bucket in which another process acts just before each replacement.
type meanwhile struct {
	Bucket
	do func() error
}

func (m meanwhile) Replace(ctx context.Context, name string, content io.Reader) error {
	return errors.Join(m.do(), m.Bucket.Replace(ctx, name, content))
}

// keeping is a store that refuses to delete any name, existing or missing, like Google's and Azure's stores without
// permission to delete.
type keeping struct{ Bucket }

func (keeping) Delete(_ context.Context, name string) error {
	return fmt.Errorf("delete %s: %w", name, ErrHeld)
}

// TestResultsAreRecordedWithoutDeleteRight checks that results can be recorded without the right to delete, and that
// damage overrides earlier results.
func TestResultsAreRecordedWithoutDeleteRight(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		kept, m := keeping{b}, manifest()
		if err := b.Create(t.Context(), m.DataPath(), strings.NewReader("abc")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Commit(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		find := func(damage string) error {
			v, err := BeginVerification(t.Context(), kept, m)
			if v.Damage = damage; err == nil {
				err = v.Record(t.Context(), kept)
			}
			return err
		}
		if err := errors.Join(find(""), find(""), Confirm(t.Context(), kept, m.Backup())); err != nil {
			t.Errorf("it is sound: %v", err)
		}
		if err := find("it is"); err != nil {
			t.Errorf("it is damaged: %v", err)
		}
		listing, err := List(t.Context(), kept, Cluster{"ns", "a"})
		if err != nil || len(listing.Backups) != 1 || listing.Backups[0].Good() {
			t.Errorf("%+v %v", listing.Backups, err)
		}
		if err := Confirm(t.Context(), kept, m.Backup()); !errors.Is(err, ErrUseless) {
			t.Errorf("other backups are deleted for a damaged one: %v", err)
		}
		if err := find(""); !errors.Is(err, ErrHeld) {
			t.Errorf("damage that stays recorded is reported as withdrawn: %v", err)
		}
	})
}

// fixed is a store that refuses to delete or replace objects, like a Google Cloud Storage bucket with a retention
// policy.
type fixed struct{ keeping }

func (f fixed) Replace(ctx context.Context, name string, content io.Reader) error {
	err := f.Create(ctx, name, content)
	if errors.Is(err, ErrExists) {
		return fmt.Errorf("store %s: %w", name, ErrHeld)
	}
	return err
}

// TestExistingMarkCountsWithoutReplaceRight checks that a verified backup can be drilled and verified again, without
// the right to replace objects, if the existing mark is equivalent. A mark with different content is not accepted.
func TestExistingMarkCountsWithoutReplaceRight(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		held, m := fixed{keeping{b}}, manifest()
		if err := b.Create(t.Context(), m.DataPath(), strings.NewReader("abc")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Commit(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		begin := func() Verification {
			v, err := BeginVerification(t.Context(), held, m)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		if err := errors.Join(begin().Record(t.Context(), held), begin().Record(t.Context(), held),
			Drill{Verification: begin()}.Record(t.Context(), held)); err != nil {
			t.Error(err)
		}
		if err := b.Replace(t.Context(), m.Backup().verifiedName(), strings.NewReader("{}")); err != nil {
			t.Fatal(err)
		}
		if err := begin().Record(t.Context(), held); !errors.Is(err, ErrHeld) {
			t.Errorf("a mark that does not describe this data is accepted as a result: %v", err)
		}
	})
}

// TestStoredDamageIsOneShortLine checks that damage is stored as one short line, although errors may contain long
// untrusted text from a manifest, and that the backup can be read again, whatever damage is recorded.
func TestStoredDamageIsOneShortLine(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		m := manifest()
		hostile := strings.Repeat("\x1b]0;ä\u202e\n::error::##vso[x]", 1200)
		text, err := json.Marshal(map[string]string{"slot": hostile})
		if err != nil || len(text) > maxManifest {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		name := m.Backup().manifestName()
		if err := b.Replace(t.Context(), name, bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		_, damage := ReadManifest(t.Context(), b, m.Backup())
		if damage == nil || len(damage.Error()) < 10*maxDamage {
			t.Fatalf("the error repeats nothing: %.100v", damage)
		}
		onRecord := func() string {
			text, err := readAll(t.Context(), b, m.Backup().damagedName())
			var found Verification
			if err != nil || len(text) > 4*maxDamage || json.Unmarshal(text, &found) != nil || len(found.Damage) > maxDamage ||
				found.Damage == "" || found.Damage != printable.Line(found.Damage) {
				t.Errorf("%d bytes, %.200q, %v", len(text), text, err)
			}
			return found.Damage
		}
		if err := b.Replace(t.Context(), name, bytes.NewReader(encoded(t, m))); err != nil {
			t.Fatal(err)
		}
		v, err := BeginVerification(t.Context(), b, m)
		if err != nil {
			t.Fatal(err)
		}
		v.Damage = damage.Error()
		if err := v.Record(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if got := onRecord(); !strings.Contains(got, name) || !strings.Contains(got, ErrManifest.Error()) {
			t.Errorf("got %q", got)
		}
		if err := b.Replace(t.Context(), m.Backup().damagedName(), strings.NewReader(strings.Repeat(hostile, 4))); err != nil {
			t.Fatal(err)
		}
		if v, err = BeginVerification(t.Context(), b, m); err == nil {
			err = v.Record(t.Context(), b)
		}
		if err != nil {
			t.Errorf("its recorded damage prevents reading it: %v", err)
		}
	})
}

// TestConfirm checks that Confirm rejects a backup whose result belongs to different data or whose data is missing, so
// that other backups are not deleted because of it.
func TestConfirm(t *testing.T) {
	b, m := directory{t.TempDir()}, manifest()
	if err := b.Create(t.Context(), m.DataPath(), strings.NewReader("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for found, sound := range map[string]bool{
		`{"sha256": "` + m.SHA256 + `"}`: true, `{"sha256": "` + m.SHA256 + `", "damage": "it is"}`: false, `{"sha256": "` + m.Snapshot.SHA256 + `"}`: false, "{}": false, "{": false,
	} {
		if err := b.Replace(t.Context(), m.Backup().verifiedName(), strings.NewReader(found)); err != nil {
			t.Fatal(err)
		}
		if err := Confirm(t.Context(), b, m.Backup()); (err == nil) != sound {
			t.Errorf("%s: %v", found, err)
		}
	}
	v, err := BeginVerification(t.Context(), b, m)
	if err == nil {
		err = errors.Join(v.Record(t.Context(), b), b.Replace(t.Context(), m.DataPath(), strings.NewReader("ab")))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Confirm(t.Context(), b, m.Backup()); !errors.Is(err, ErrData) {
		t.Errorf("its data are shorter: %v", err)
	}
	if err := errors.Join(b.Delete(t.Context(), m.DataPath()), Confirm(t.Context(), b, m.Backup())); !errors.Is(err, ErrData) {
		t.Errorf("its data are gone: %v", err)
	}
}

// TestPipeDoesNotBlockReaders checks that a pipe in a store's directory does not block readers.
func TestPipeDoesNotBlockReaders(t *testing.T) {
	dir := t.TempDir()
	if err := exec.Command("mkfifo", filepath.Join(dir, "pipe")).Run(); err != nil {
		t.Skip(err)
	}
	if r, err := (directory{dir}).Open(t.Context(), "pipe"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v %v", r, err)
	}
}

type recording struct {
	Bucket
	deleted []string
}

func (r *recording) Delete(ctx context.Context, name string) error {
	r.deleted = append(r.deleted, name)
	return r.Bucket.Delete(ctx, name)
}

func encoded(t *testing.T, m Manifest) []byte {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
