package store

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// TestLockFor checks that the manifest and the data are locked for the requested time, whether they are uploaded in
// parts or in one request, and that nothing else is locked. Held reports the lock without contacting the store.
func TestLockFor(t *testing.T) {
	b, f := versitygw(t)
	if _, err := client(t, b).CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("locked"), ObjectLockEnabledForBucket: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	f.options.S3.LockFor = 48 * time.Hour
	locked := open(t, "s3://locked/ours", f.options)
	begun := time.Now()
	m := manifest()
	m.Bytes, m.LockedUntil = 2*partSize+1, LockedUntil(locked, begun)
	if err := locked.Create(t.Context(), m.DataPath(), large("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Commit(t.Context(), locked); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{m.DataPath(), m.Backup().manifestName()} {
		head, err := client(t, locked).HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("locked"), Key: aws.String("ours/" + name)})
		if err != nil {
			t.Fatal(err)
		}
		if until := aws.ToTime(head.ObjectLockRetainUntilDate); head.ObjectLockMode != types.ObjectLockModeCompliance ||
			until.Before(m.LockedUntil) || until.After(time.Now().Add(f.options.S3.LockFor)) {
			t.Errorf("%s is locked until %s (%s)", name, until, head.ObjectLockMode)
		}
		if err := locked.Delete(t.Context(), name); !errors.Is(err, ErrHeld) {
			t.Errorf("%s was deleted: %v", name, err)
		}
	}
	for _, damage := range []string{"once", "twice", ""} { // marks can be replaced and deleted
		v, err := BeginVerification(t.Context(), locked, m)
		if v.Damage = damage; err == nil {
			err = v.Record(t.Context(), locked)
		}
		if err != nil {
			t.Errorf("%q: %v", damage, err)
		}
	}
	now, err := ReadUseful(t.Context(), locked, m.Backup())
	if err != nil {
		t.Fatal(err)
	}
	if held := now.Held(begun.Add(47 * time.Hour)); !errors.Is(held, ErrHeld) || !strings.Contains(held.Error(), "locked until "+m.LockedUntil.Format(time.RFC3339)) {
		t.Errorf("got %v", held)
	}
	if held := now.Held(begun.Add(49 * time.Hour)); held != nil {
		t.Errorf("got %v", held)
	}
	if err := open(t, "s3://backups/ours", f.options).Create(t.Context(), m.DataPath(), strings.NewReader("a")); err == nil {
		t.Error("a bucket without object lock accepts objects that must be locked")
	}
	if until := LockedUntil(b, begun); !until.IsZero() {
		t.Errorf("it would be locked until %s, which was not requested", until)
	}
}

// promises is a store that records requests and returns configured responses.
type promises struct {
	mu    sync.Mutex
	asked map[string]http.Header // by method and name
	says  map[string]string
}

func (p *promises) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	p.asked[r.Method+" "+r.URL.Path+r.URL.RawQuery] = r.Header
	for name, value := range p.says {
		w.Header().Set(name, value)
	}
	w.Header().Set("ETag", `"e"`)
	w.Header().Set("Last-Modified", "Sun, 22 Nov 2026 18:00:00 GMT")
}

// TestUnconfirmedLockOrEncryptionFails checks that all uploads request the configured key, and that uploads of backups
// also request the lock. If the store does not confirm both, an error is returned even though the upload succeeded.
// Without these settings, uploads request neither.
func TestUnconfirmedLockOrEncryptionFails(t *testing.T) {
	const (
		lockMode, lockedUntil = "X-Amz-Object-Lock-Mode", "X-Amz-Object-Lock-Retain-Until-Date"
		encryption, keyID     = "X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"
		arn                   = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	)
	key(t, "old")
	later := time.Now().Add(72 * time.Hour).UTC().Format(time.RFC3339)
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	encrypted := map[string]string{encryption: "aws:kms", keyID: arn}
	for name, test := range map[string]struct {
		key     string
		lockFor time.Duration
		says    map[string]string
		want    string // the expected error, or ""
	}{
		"nothing":                {"", 0, nil, ""},
		"the key":                {arn, 0, encrypted, ""},
		"the key by its ID":      {"1234abcd-12ab-34cd-56ef-1234567890ab", 0, encrypted, ""},
		"the key by an alias":    {"alias/backups", 0, encrypted, ""},
		"another key":            {"arn:aws:kms:eu-central-1:111122223333:key/other", 0, encrypted, "a different KMS key"},
		"no key":                 {arn, 0, nil, "encrypted with a KMS key"},
		"another encryption":     {"alias/backups", 0, map[string]string{encryption: "AES256"}, "encrypted with a KMS key"},
		"a lock":                 {"", 48 * time.Hour, map[string]string{lockMode: "COMPLIANCE", lockedUntil: later}, ""},
		"no lock":                {"", 48 * time.Hour, nil, "s3:GetObjectRetention"},
		"a shorter lock":         {"", 48 * time.Hour, map[string]string{lockMode: "COMPLIANCE", lockedUntil: soon}, "locked until"},
		"a lock of another mode": {"", 48 * time.Hour, map[string]string{lockMode: "GOVERNANCE", lockedUntil: later}, "locked until"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &promises{asked: map[string]http.Header{}, says: maps.Clone(test.says)}
			served := httptest.NewServer(p)
			defer served.Close()
			b := open(t, "s3://bucket/ours", Options{S3: S3{Endpoint: served.URL, PathStyle: true, KMSKey: test.key, LockFor: test.lockFor}})
			err := b.Create(t.Context(), "data", strings.NewReader("a"))
			if (err != nil) != (test.want != "") || err != nil && (!strings.Contains(err.Error(), test.want) || errors.Is(err, ErrExists)) {
				t.Errorf("got %v", err)
			}
			if err := b.Replace(t.Context(), "mark", strings.NewReader("a")); err != nil {
				t.Error(err)
			}
			for name, lockFor := range map[string]time.Duration{"data": test.lockFor, "mark": 0} {
				asked := p.asked["PUT /bucket/ours/"+name+"x-id=PutObject"]
				if asked == nil {
					t.Fatalf("%s was not stored: %v", name, p.asked)
				}
				if asked.Get(keyID) != test.key || (asked.Get(encryption) == "aws:kms") != (test.key != "") {
					t.Errorf("%s: %v", name, asked)
				}
				until, err := time.Parse(time.RFC3339, asked.Get(lockedUntil))
				if (err == nil) != (lockFor > 0) || (asked.Get(lockMode) == "COMPLIANCE") != (lockFor > 0) ||
					err == nil && (until.Before(time.Now().Add(lockFor-time.Minute)) || until.After(time.Now().Add(lockFor))) {
					t.Errorf("%s: %v", name, asked)
				}
			}
		})
	}
}
