package store

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// versitygw serves S3 behind TLS, like AWS, with the sandbox's s3 program. QUORATE_S3 is the path of that program.
func versitygw(t *testing.T) (objects, *front) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data", "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	key(t, "old")
	f := &front{store: serveS3(t, dir), dir: dir}
	served := httptest.NewTLSServer(f)
	t.Cleanup(served.Close)
	f.options.S3 = S3{
		Endpoint: served.URL, PathStyle: true,
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: served.Certificate().Raw}),
	}
	return open(t, "s3://backups/ours", f.options), f
}

// key sets the access key for programs and clients that are started after it is called.
func key(t *testing.T, name string) {
	t.Setenv("AWS_ACCESS_KEY_ID", name)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "not a secret")
}

// serveS3 returns a handler that serves a directory and requires the access key from the environment.
func serveS3(t *testing.T, dir string) http.Handler {
	t.Helper()
	program := os.Getenv("QUORATE_S3")
	if program == "" {
		t.Skip("QUORATE_S3 does not name a program that serves S3; make test sets it")
	}
	sockets, err := os.MkdirTemp("", "s3-") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	socket := filepath.Join(sockets, "s3")
	server := exec.Command(program, dir, socket)
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe() // the program exits when stdin is closed
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = server.Wait() })
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		conn, err := dial(t.Context(), "", "")
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	return &httputil.ReverseProxy{
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "s3", r.In.Host // the host is part of the signature
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// client returns the underlying client of an S3 store.
func client(t *testing.T, b objects) *s3.Client {
	t.Helper()
	var c *s3.Client
	if !b.bucket.As(&c) {
		t.Fatal("it is not an S3 store")
	}
	return c
}

// s3Answer sends an S3 error response.
func s3Answer(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>a message</Message></Error>", code)
}

// TestS3ErrorsBeginWithCause checks that errors of S3 contain the cause before everything that only identifies the
// request. Otherwise, the cause is cut off in an event.
func TestS3ErrorsBeginWithCause(t *testing.T) {
	key(t, "key")
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("x-amz-request-id", "REQUEST")
		w.Header().Set("x-amz-id-2", "HOST")
		s3Answer(w, http.StatusBadRequest, "AuthorizationHeaderMalformed")
	}))
	t.Cleanup(served.Close)
	b := open(t, "s3://backups/ours", Options{S3: S3{Endpoint: served.URL, PathStyle: true}})
	_, listed := b.List(t.Context(), "ns/")
	_, opened := b.Open(t.Context(), "ns/a/1")
	for want, err := range map[string]error{
		"store ns/a/1: ": b.Create(t.Context(), "ns/a/1", strings.NewReader("x")),
		"store ns/a/2: ": b.Create(t.Context(), "ns/a/2", large("a")),
		"open ns/a/1: ":  opened, `list objects with prefix "ours/ns/": `: listed,
	} {
		want += "S3 returned 400 AuthorizationHeaderMalformed: a message (request ID REQUEST)"
		if err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
	if _, err := b.Size(t.Context(), "x"); err == nil || err.Error() != "inspect x: S3 returned 400 BadRequest: Bad Request" {
		t.Error(err)
	}
	served.Close()
	if _, err := b.Size(t.Context(), "x"); err == nil || !strings.HasPrefix(err.Error(), "inspect x: Head \""+served.URL+"/backups/ours/x\": dial tcp ") {
		t.Error(err)
	}
}

// TestLockedObjectsAreKept checks that locked objects are kept, and that an attempt to delete them returns an error.
// Like AWS, the store accepts objects in a bucket with locks only with a checksum of their content.
func TestLockedObjectsAreKept(t *testing.T) {
	b, f := versitygw(t)
	c := client(t, b)
	_, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("locked"), ObjectLockEnabledForBucket: aws.Bool(true)})
	if err == nil {
		_, err = c.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{
			Bucket: aws.String("locked"), ObjectLockConfiguration: &types.ObjectLockConfiguration{
				ObjectLockEnabled: types.ObjectLockEnabledEnabled,
				Rule:              &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{Days: aws.Int32(1), Mode: types.ObjectLockRetentionModeCompliance}},
			},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	f.instead.Store(func(w http.ResponseWriter, r *http.Request) bool {
		bare := r.Method == http.MethodPut && r.Header.Get("Content-Md5") == ""
		if bare {
			s3Answer(w, http.StatusBadRequest, "InvalidRequest")
		}
		return bare
	})
	locked := open(t, "s3://locked/ours", f.options)
	m := manifest()
	m.Bytes = 2*partSize + 1
	if err := locked.Create(t.Context(), m.DataPath(), large("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Commit(t.Context(), locked); err != nil {
		t.Fatal(err)
	}
	if err := listAndRemove(locked, m); !errors.Is(err, ErrHeld) {
		t.Errorf("it was deleted: %v", err)
	}
	if err := locked.Delete(t.Context(), m.DataPath()); !errors.Is(err, ErrHeld) {
		t.Errorf("its data were deleted: %v", err)
	}
	if _, err := ReadUseful(t.Context(), locked, m.Backup()); err != nil {
		t.Error(err)
	}
}

// TestMultipartRetryAcceptsOwnObject checks that a multipart upload is recognized as complete even if the response to
// its last request was lost.
func TestMultipartRetryAcceptsOwnObject(t *testing.T) {
	b, f := versitygw(t)
	var completed atomic.Int32
	f.instead.Store(func(w http.ResponseWriter, r *http.Request) bool {
		complete := r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
		if complete && completed.Add(1) == 1 {
			f.store.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		if complete {
			s3Answer(w, http.StatusNotFound, "NoSuchUpload")
		}
		return complete
	})
	if err := b.Create(t.Context(), "ns/a/1", large("a")); !errors.Is(err, ErrExists) {
		t.Errorf("%v", err)
	}
	if size, err := b.Size(t.Context(), "ns/a/1"); size != 2*partSize+1 || err != nil || completed.Load() < 2 {
		t.Errorf("%d bytes, %v, completed %d times", size, err, completed.Load())
	}
}

// TestConflictIsRetried checks that a request is retried if the store asks for a retry because several requests write
// the same name.
func TestConflictIsRetried(t *testing.T) {
	b, f := versitygw(t)
	var asked atomic.Int32
	conflicts := int32(1)
	f.instead.Store(func(w http.ResponseWriter, r *http.Request) bool {
		conflict := r.Method == http.MethodPut && asked.Add(1) <= conflicts
		if conflict {
			s3Answer(w, http.StatusConflict, "ConditionalRequestConflict")
		}
		return conflict
	})
	if err := b.Create(t.Context(), "ns/a/1", strings.NewReader("ours")); err != nil || asked.Load() != 2 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
	conflicts = 1000
	if err := b.Create(t.Context(), "ns/a/2", strings.NewReader("ours")); err == nil || errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "ConditionalRequestConflict") {
		t.Errorf("%v", err)
	}
}

// TestRevokedKeyEndsUpload checks that an upload in progress fails if its key is revoked, and that the error contains
// the reason. The upload leaves nothing behind and succeeds with the new key.
func TestRevokedKeyEndsUpload(t *testing.T) {
	b, f := versitygw(t)
	if err := b.Create(t.Context(), "ns/a/1", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	key(t, "new")
	renewed := serveS3(t, f.dir)
	var parts atomic.Int32
	f.instead.Store(func(w http.ResponseWriter, r *http.Request) bool {
		first := r.URL.Query().Has("partNumber") && parts.Add(1) == 1
		switch {
		case first || parts.Load() == 0:
			return false
		case strings.Contains(r.Header.Get("Authorization"), "Credential=new/"):
			renewed.ServeHTTP(w, r)
		default: // versitygw itself uses a different code
			s3Answer(w, http.StatusForbidden, "InvalidAccessKeyId")
		}
		return true
	})
	err := b.Create(t.Context(), "ns/a/2", large("a"))
	if err == nil || !strings.Contains(err.Error(), "InvalidAccessKeyId") {
		t.Errorf("%v", err)
	}
	_, opened := b.Open(t.Context(), "ns/a/1")
	_, listed := b.List(t.Context(), "ns/")
	for what, err := range map[string]error{"open": opened, "list": listed} {
		if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrHeld) {
			t.Errorf("%s: %v", what, err)
		}
	}
	again := open(t, "s3://backups/ours", f.options)
	if names, err := again.List(t.Context(), "ns/"); len(names) != 1 || err != nil {
		t.Errorf("%q is there, %v", names, err)
	}
	if err := again.Create(t.Context(), "ns/a/2", large("b")); err != nil || strings.Trim(content(t, again, "ns/a/2"), "b") != "" {
		t.Errorf("%v", err)
	}
}

// TestMissingBucketIsNotMissingObject checks that a missing bucket does not count as evidence that objects are missing.
// Otherwise, backups would be reported as damaged because of missing data.
func TestMissingBucketIsNotMissingObject(t *testing.T) {
	for name, gone := range map[string]func(*testing.T) Bucket{
		"s3": func(t *testing.T) Bucket { _, f := versitygw(t); return open(t, "s3://gone/ours", f.options) },
		"gs": func(t *testing.T) Bucket { _, _ = gcs(t); return open(t, "gs://gone/ours", Options{}) },
		"azblob": func(t *testing.T) Bucket {
			b, f := azure(t)
			f.instead.Store(func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 404, "ContainerNotFound") })
			return b
		},
		"directory": func(t *testing.T) Bucket { return directory{filepath.Join(t.TempDir(), "gone")} },
	} {
		t.Run(name, func(t *testing.T) {
			b := gone(t)
			_, opened := b.Open(t.Context(), "ns/a/1")
			_, sized := b.Size(t.Context(), "ns/a/1")
			_, listed := b.List(t.Context(), "ns/")
			for what, err := range map[string]error{"open": opened, "size": sized, "list": listed, "delete": b.Delete(t.Context(), "ns/a/1")} {
				if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), errGone.Error()) && what != "list" {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := manifest().ConfirmData(t.Context(), b); err == nil || errors.Is(err, ErrData) {
				t.Errorf("confirm data: %v", err)
			}
		})
	}
}

// TestOnlyOneConcurrentMultipartUploadSucceeds checks that only one of many concurrent multipart uploads to the same
// name succeeds.
func TestOnlyOneConcurrentMultipartUploadSucceeds(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		const writers = 8
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				err := b.Create(t.Context(), "ns/a/1", io.LimitReader(strings.NewReader(strings.Repeat(fmt.Sprint(i), partSize+1)), partSize+1))
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, ErrExists) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		text := content(t, b, "ns/a/1")
		if won.Load() != 1 || len(text) != partSize+1 || strings.Trim(text, text[:1]) != "" {
			t.Errorf("%d created it, of %d bytes", won.Load(), len(text))
		}
	})
}

// TestConcurrentCommitsShareOneManifest checks that only one of many concurrent commits for the same slot succeeds, and
// that all of them return the same manifest.
func TestConcurrentCommitsShareOneManifest(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		data := make([]string, 8)
		var all sync.WaitGroup
		for i := range data {
			all.Go(func() {
				m, err := manifest().Commit(t.Context(), b)
				if err != nil {
					t.Error(err)
				}
				data[i] = m.Data
			})
		}
		all.Wait()
		m, err := ReadManifest(t.Context(), b, manifest().Backup())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range data {
			if name != m.Data {
				t.Errorf("%s, but it is %s", name, m.Data)
			}
		}
	})
}

// TestListOrderDoesNotMatter checks that lists may be in any order, and that names may be repeated on different pages.
func TestListOrderDoesNotMatter(t *testing.T) {
	b, f := azure(t)
	f.store.(*azureStub).odd = true
	m := manifest()
	var want []string
	for range 5 {
		m.Slot = m.Slot.Add(time.Hour)
		m.Data = m.NewDataName()
		if _, err := m.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		want = append(want, m.Backup().manifestName())
	}
	if names, err := b.List(t.Context(), "ns/"); err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v", names, err)
	}
	listing, err := List(t.Context(), b, Cluster{"ns", "a"})
	if newest, _ := listing.Newest(); err != nil || len(listing.Backups) != 5 || !newest.Slot.Equal(m.Slot) {
		t.Errorf("%+v, %v", listing, err)
	}
}

// TestTruncatedS3ListIsAnError checks that an invalid or truncated S3 list is an error. If such a list were treated as
// complete, an old backup might be restored, or none at all.
func TestTruncatedS3ListIsAnError(t *testing.T) {
	const one = "<Contents><Key>ours/ns/a/1</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
	for name, tt := range map[string]struct {
		answer string
		want   error
	}{
		"a list":             {"<ListBucketResult><IsTruncated>false</IsTruncated>" + one + "</ListBucketResult>", nil},
		"an empty list":      {"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>", nil},
		"nothing":            {"", errNoStore},
		"a page of the web":  {"<html><body>Console</body></html>", errNoStore},
		"no time":            {"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>ours/ns/a/1</Key></Contents></ListBucketResult>", errNoStore},
		"no way to the rest": {"<ListBucketResult><IsTruncated>true</IsTruncated>" + one + "</ListBucketResult>", errCutOff},
	} {
		t.Run(name, func(t *testing.T) {
			served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tt.answer) }))
			t.Cleanup(served.Close)
			if names, err := openS3At(t, served.URL).List(t.Context(), "ns/"); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%q, %v", names, err)
			}
		})
	}
}

// TestNonStoreResponseIsAnError checks that a response from something other than a store, such as a web console, does
// not count as evidence about objects.
func TestNonStoreResponseIsAnError(t *testing.T) {
	for _, found := range []int{http.StatusOK, http.StatusNotFound} {
		served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !isList(r) {
				w.WriteHeader(found)
			}
			fmt.Fprint(w, "<html><body>Console</body></html>")
		}))
		t.Cleanup(served.Close)
		for name, b := range map[string]objects{
			"s3":     openS3At(t, served.URL),
			"azblob": openAzureAt(t, served.URL),
		} {
			t.Run(fmt.Sprint(name, found), func(t *testing.T) {
				m := manifest()
				_, listed := b.List(t.Context(), "ns/")
				_, read := ReadManifest(t.Context(), b, m.Backup())
				for what, err := range map[string]error{"list": listed, "confirm": m.ConfirmData(t.Context(), b), "read": read} {
					if err == nil || errors.Is(err, ErrNotFound) {
						t.Errorf("%s: %v", what, err)
					}
				}
			})
		}
	}
}

func openS3At(t *testing.T, endpoint string) objects {
	key(t, "old")
	return open(t, "s3://backups/ours", Options{S3: S3{Endpoint: endpoint, PathStyle: true}})
}
