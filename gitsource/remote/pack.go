package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Bounds on what a server may send, all far over what an honest one needs.
const (
	// maxRefsBytes of the list of branches and tags, which a server sends first.
	maxRefsBytes = 32 << 20
	// maxResponseBytes of one answer of a server: a pack of one revision.
	maxResponseBytes = 256 << 20
	// maxPackBytes and maxPackObjects of a pack as its headers declare them, inflated.
	maxPackBytes   = 512 << 20
	maxPackObjects = 500_000
)

// fetchPack puts the objects that the request asks for into the store.
func fetchPack(ctx context.Context, s transport.UploadPackSession, request *packp.UploadPackRequest, store storer.EncodedObjectStorer) (err error) {
	response, err := s.UploadPack(ctx, request)
	if err != nil {
		return err
	}
	defer response.Close()
	pack := &firstError{r: response}
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		pack.r = sideband.NewDemuxer(sideband.Sideband64k, response)
	case request.Capabilities.Supports(capability.Sideband):
		pack.r = sideband.NewDemuxer(sideband.Sideband, response)
	}
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(pack), store, &packBounds{})
	if err != nil {
		return err
	}
	if _, err = parser.Parse(); err != nil && pack.err != nil {
		return pack.err
	}
	return err
}

// firstError remembers why a reader ended early: the parser of packs only says that it did.
type firstError struct {
	r   io.Reader
	err error
}

func (f *firstError) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF && f.err == nil {
		f.err = err
	}
	return n, err
}

// packBounds stops a pack that is inflated beyond what is sensible: by what its headers
// declare, and by what its deltas make of that.
type packBounds struct{ declared, inflated int64 }

func (b *packBounds) OnHeader(count uint32) error {
	if count > maxPackObjects {
		return fmt.Errorf("the pack has %d objects, more than %d; declare clusters in a smaller repository", count, maxPackObjects)
	}
	return nil
}

func (b *packBounds) OnInflatedObjectHeader(_ plumbing.ObjectType, size, _ int64) error {
	if b.declared += size; size < 0 || b.declared > maxPackBytes {
		return errPackTooLarge
	}
	return nil
}

func (b *packBounds) OnInflatedObjectContent(_ plumbing.Hash, _ int64, _ uint32, content []byte) error {
	if b.inflated += int64(len(content)); b.inflated > maxPackBytes {
		return errPackTooLarge
	}
	return nil
}

func (b *packBounds) OnFooter(plumbing.Hash) error { return nil }

var errPackTooLarge = fmt.Errorf("the revision is larger than %d MiB; declare clusters in a smaller repository", maxPackBytes>>20)

// boundedTransport ends answers that are too large, and drops the text of answers that
// are errors: it is the server's, and would end in our logs.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip sends one request.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		response.Body.Close()
		response.Body = http.NoBody
		return response, nil
	}
	bound := int64(maxResponseBytes)
	if r.Method == http.MethodGet {
		bound = maxRefsBytes
	}
	response.Body = &boundedBody{ReadCloser: response.Body, bound: bound, left: bound}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	bound, left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is larger than %d MiB", b.bound>>20)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}
