package store

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// maxResponseBytes is the maximum size of responses that the libraries read into memory. These are errors and list
// pages, but not the content of objects. A page contains up to 1000 names of at most 1024 bytes, each with about 1 KiB
// of properties. XML needs up to six bytes for each byte of a name.
const maxResponseBytes = 16 << 20

// errTooLarge is returned for a response that exceeds maxResponseBytes.
var errTooLarge error = tooLarge{}

type tooLarge struct{}

func (tooLarge) Error() string {
	return fmt.Sprintf("the store's response is larger than %d MiB, the limit for all responses except object "+
		"content",
		maxResponseBytes>>20)
}

// NonRetriable keeps the Azure library from repeating the request.
func (tooLarge) NonRetriable() {}

type contentKey struct{}

// readingContent marks requests made with the returned context as requests for the content of an object.
func readingContent(ctx context.Context) context.Context {
	return context.WithValue(ctx, contentKey{}, true)
}

// limited is an HTTP client that limits the size of responses.
type limited struct {
	client interface {
		Do(r *http.Request) (*http.Response, error)
	}
}

// Do sends a request.
func (l limited) Do(r *http.Request) (*http.Response, error) {
	response, err := l.client.Do(r)
	if err == nil && !isContent(response.StatusCode, r) {
		response.Body = &limitedBody{ReadCloser: response.Body, left: maxResponseBytes}
	}
	return response, err
}

// isContent reports whether a response contains the content of an object, which is not read into memory.
func isContent(status int, r *http.Request) bool {
	return r.Context().Value(contentKey{}) != nil && r.Method == http.MethodGet &&
		(status == http.StatusOK || status == http.StatusPartialContent)
}

// limitedBody is a response body from which at most left bytes can be read.
type limitedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, errTooLarge
	}
	return n, err
}

// limitedTransport limits the size of the responses of a transport.
type limitedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return limited{doer(t.RoundTripper.RoundTrip)}.Do(r)
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
