package kube

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// mostOfAnswer is how long an answer may be, in bytes. An object of Kubernetes has less than 2 MiB, and a page of what
// Quorate makes less than half of this.
const mostOfAnswer = 8 << 20

// errLong says that an answer is longer than that.
var errLong = fmt.Errorf("its answer is longer than %d MiB", mostOfAnswer>>20)

// bounded ends answers that are too long, before they take all memory. It is for requests that are answered at once.
func bounded(next http.RoundTripper) http.RoundTripper { return &bounding{next} }

// bounding reads answers up to a bound.
type bounding struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper. It reads the answer, so that one that is too long is none: client-go would
// write to stderr that it cannot be read.
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

// failing is what comes where an answer breaks off; its end if it does not.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, cmp.Or(f.err, io.EOF) }

// WrappedRoundTripper is for client-go, which looks for what is below.
func (b *bounding) WrappedRoundTripper() http.RoundTripper { return b.next }

// smallerPage is the size of a page to ask for where one of that size is too long; zero if there is none.
func smallerPage(size int64, err error) int64 {
	const fewer = 8
	if !errors.Is(err, errLong) || size == 1 {
		return 0
	}
	return max(1, size/fewer)
}
