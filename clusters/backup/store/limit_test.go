package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// endless returns a handler that responds with start and then repeats the same bytes until the client closes the
// connection. It sets most to the largest number of bytes in a response.
func endless(status int, contentType, start string, most *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		if r.Method == http.MethodHead {
			return
		}
		sent, err := io.WriteString(w, start)
		for fill := bytes.Repeat([]byte("x"), 64<<10); err == nil && sent < 20*maxResponseBytes; {
			var n int
			n, err = w.Write(fill)
			sent += n
		}
		most.Store(max(most.Load(), int64(sent)))
	}
}

// TestEndlessResponsesAreLimited checks that a store cannot exhaust the memory of a client with an endless list or
// error.
func TestEndlessResponsesAreLimited(t *testing.T) {
	list := func(ctx context.Context, b objects) error { _, err := b.List(ctx, ""); return err }
	read := func(ctx context.Context, b objects) error {
		content, err := b.Open(ctx, "x")
		if err == nil {
			_ = content.Close()
		}
		return err
	}
	create := func(ctx context.Context, b objects) error { return b.Create(ctx, "x", strings.NewReader("x")) }
	openGCSAt := func(t *testing.T, url string) objects {
		t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(url, "http://"))
		return open(t, "gs://backups/ours", Options{})
	}
	const xml, json = "application/xml", "application/json"
	for name, c := range map[string]struct {
		open        func(*testing.T, string) objects
		request     func(context.Context, objects) error
		status      int
		kind, start string
		unnamed     bool // the library hides why it could not read the error
	}{
		"s3, list":             {openS3At, list, 200, xml, "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>", false},
		"s3, error of list":    {openS3At, list, 403, xml, "<Error><Code>AccessDenied</Code><Message>", false},
		"s3, error of read":    {openS3At, read, 403, xml, "<Error><Code>AccessDenied</Code><Message>", false},
		"s3, error of create":  {openS3At, create, 403, xml, "<Error><Code>AccessDenied</Code><Message>", false},
		"azure, list":          {openAzureAt, list, 200, xml, "<EnumerationResults><Blobs><Blob><Name>", false},
		"azure, error of list": {openAzureAt, list, 403, xml, "<Error><Code>AuthorizationFailure</Code><Message>", false},
		"azure, error of read": {openAzureAt, read, 403, xml, "<Error><Code>AuthorizationFailure</Code><Message>", false},
		"gcs, list":            {openGCSAt, list, 200, json, `{"items":[{"name":"`, false},
		"gcs, error of list":   {openGCSAt, list, 403, json, `{"error":{"code":403,"message":"`, true},
		"gcs, error of read":   {openGCSAt, read, 403, json, `{"error":{"code":403,"message":"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			var most atomic.Int64
			served := httptest.NewServer(endless(c.status, c.kind, c.start, &most))
			b := c.open(t, served.URL)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := c.request(ctx, b)
			served.Close() // waits until the responses have ended
			if err == nil || !c.unnamed && !strings.Contains(err.Error(), errTooLarge.Error()) {
				t.Errorf("error %.300v", err)
			}
			if sent := most.Load(); sent > 2*maxResponseBytes { // includes the connections' buffers
				t.Errorf("%d MiB of a response were accepted", sent>>20)
			}
		})
	}
}

// TestLimitDoesNotApplyToContent checks that the limit on responses does not apply to the content of objects.
func TestLimitDoesNotApplyToContent(t *testing.T) {
	eachCloud(t, func(t *testing.T, b objects, _ *front) {
		const size = maxResponseBytes + 1
		if err := b.Create(t.Context(), "x", io.LimitReader(zeros{}, size)); err != nil {
			t.Fatal(err)
		}
		content, err := b.Open(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		if n, err := io.Copy(io.Discard, content); n != size || err != nil {
			t.Errorf("%d bytes, error %v", n, err)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLimitedBody(t *testing.T) {
	for _, c := range []struct {
		size int
		want error
	}{{9, nil}, {10, nil}, {11, errTooLarge}, {30, errTooLarge}} {
		body := &limitedBody{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("x", c.size))), left: 10}
		got, err := io.ReadAll(body)
		if len(got) != min(c.size, 10) || !errors.Is(err, c.want) {
			t.Errorf("%d bytes: %d, error %v", c.size, len(got), err)
		}
		if _, err := body.Read(make([]byte, 1)); c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%d bytes: then error %v", c.size, err)
		}
	}
}
