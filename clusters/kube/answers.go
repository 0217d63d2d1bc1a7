package kube

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// mostOfAnswer is the maximum size of a response in bytes. A Kubernetes object is smaller than 2 MiB, and a page of
// Quorate's own objects takes less than half of this limit.
const mostOfAnswer = 8 << 20

// errLong is returned if a response exceeds mostOfAnswer.
var errLong = fmt.Errorf("its response is longer than %d MiB", mostOfAnswer>>20)

// bounded rejects responses that are too long before they exhaust the memory. Use it for requests with an immediate
// response, not for watches.
func bounded(next http.RoundTripper) http.RoundTripper { return &bounding{next} }

// bounding reads responses up to a limit.
type bounding struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper. It reads the whole response and returns an error if it is too long. If the
// error occurred while client-go was reading the response, client-go would report it on stderr.
func (b *bounding) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err != nil || answer == nil || answer.Body == nil {
		return answer, err
	}
	defer answer.Body.Close()
	text, broken := io.ReadAll(io.LimitReader(answer.Body, mostOfAnswer+1))
	if len(text) > mostOfAnswer {
		return nil, errLong
	}
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), failing{broken}))
	return answer, nil
}

// failing is a reader that returns the error that cut off a response, or EOF.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, cmp.Or(f.err, io.EOF) }

// WrappedRoundTripper lets client-go find the underlying transport.
func (b *bounding) WrappedRoundTripper() http.RoundTripper { return b.next }

// smallerPage returns the page size with which to retry if err means that a page of the given size is too long. It
// returns zero otherwise, or if the page cannot be smaller.
func smallerPage(size int64, err error) int64 {
	const fewer = 8
	if !errors.Is(err, errLong) || size == 1 {
		return 0
	}
	return max(1, size/fewer)
}
