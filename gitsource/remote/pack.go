package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"quorate.dev/quorate/gitsource/pack"
)

// Fetch returns the commit or tag object named by hash, and its files. If the server supports it, the history and files
// over the size limit are left out. The caller must close the Store.
func (s *Session) Fetch(ctx context.Context, hash plumbing.Hash) (*pack.Store, error) {
	request := s.request(hash, 1)
	s.filter(request, packp.FilterBlobLimit(uint64(s.limits().Pack.FileBytes)+1, packp.BlobLimitPrefixNone))
	store, _, err := s.fetchPack(ctx, request)
	return store, err
}

// request returns a request for one commit, with depth commits of its history, or with all of its history if depth is
// zero. If the server does not serve the commit by hash, the request names all branches and tags with their history. If
// they do not include the commit, it is unavailable.
func (s *Session) request(want plumbing.Hash, depth int) *packp.UploadPackRequest {
	request := packp.NewUploadPackRequestFromCapabilities(s.advertised.Capabilities)
	if s.advertised.Capabilities.Supports(capability.NoProgress) {
		_ = request.Capabilities.Set(capability.NoProgress)
	}
	given, ok := s.givenOut(want)
	if !ok {
		for _, hash := range s.advertised.References {
			request.Wants = append(request.Wants, hash)
		}
		plumbing.HashesSort(request.Wants)
		request.Wants = slices.Compact(request.Wants)
		return request
	}
	request.Wants = []plumbing.Hash{given}
	if depth > 0 && s.advertised.Capabilities.Supports(capability.Shallow) {
		_ = request.Capabilities.Set(capability.Shallow)
		request.Depth = packp.DepthCommits(depth)
	}
	return request
}

// givenOut returns the hash to request in order to get want: want itself, or the hash of a tag that names it.
func (s *Session) givenOut(want plumbing.Hash) (plumbing.Hash, bool) {
	if s.advertised.Capabilities.Supports(capability.AllowReachableSHA1InWant) ||
		s.advertised.Head != nil && *s.advertised.Head == want {
		return want, true
	}
	for _, hash := range s.advertised.References {
		if hash == want {
			return want, true
		}
	}
	first := "" // deterministic if there are several tags
	for name, hash := range s.advertised.Peeled {
		if hash == want && (first == "" || name < first) {
			first = name
		}
	}
	tag, ok := s.advertised.References[first]
	return tag, ok
}

// filter makes the request leave out objects if the server supports filters.
func (s *Session) filter(request *packp.UploadPackRequest, filter packp.Filter) {
	if s.advertised.Capabilities.Supports(capability.Filter) {
		_ = request.Capabilities.Set(capability.Filter)
		request.Filter = filter
	}
}

// fetchPack returns the requested objects, and the commits whose parents are left out. It returns when ctx ends, even
// if the server does not respond.
func (s *Session) fetchPack(
	ctx context.Context, request *packp.UploadPackRequest,
) (*pack.Store, []plumbing.Hash, error) {
	if err := s.renew(ctx); err != nil {
		return nil, nil, err
	}
	upload := s.upload
	defer context.AfterFunc(ctx, func() { _ = upload.Close() })()
	response, err := upload.UploadPack(ctx, request)
	if err != nil {
		return nil, nil, s.explain(ctx, err)
	}
	defer response.Close()
	bound := s.limits().PackBytes
	var content io.Reader = &bounded{Reader: response, left: bound, exceeded: packTooLarge(bound)}
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		content = sideband.NewDemuxer(sideband.Sideband64k, content)
	case request.Capabilities.Supports(capability.Sideband):
		content = sideband.NewDemuxer(sideband.Sideband, content)
	}
	store, err := pack.Read(ctx, content, pack.Options{Limits: s.limits().Pack, Dir: s.repository.TempDir,
		Filtered: request.Filter != ""})
	if err != nil {
		return nil, nil, s.explain(ctx, err)
	}
	return store, response.Shallows, nil
}

// renew reconnects before every request except the first, because a server answers one request per connection.
func (s *Session) renew(ctx context.Context) error {
	if !s.used {
		s.used = true
		return nil
	}
	again, err := Open(ctx, s.repository)
	if err != nil {
		return err
	}
	s.Close()
	s.upload, s.close, s.elsewhere, s.secrets = again.upload, again.close, again.elsewhere, again.secrets
	return nil
}

func (s *Session) limits() Limits { return s.repository.Limits.OrDefault() }

func packTooLarge(bound int64) error {
	return explainedError{fmt.Errorf("the response is larger than %s; "+
		"declare clusters in a smaller repository, or raise limits.bytes", pack.Size(bound))}
}

func refsTooLarge(bound int64) error {
	return explainedError{fmt.Errorf("the list of branches and tags is larger than %s; delete some, or raise "+
		"limits.bytes",
		pack.Size(bound))}
}

// bounded is a reader that returns the error exceeded once left bytes have been read.
type bounded struct {
	io.Reader
	left     int64
	exceeded error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// Data that ends exactly at the limit is not too large.
		if n, err := b.Reader.Read(make([]byte, 1)); n == 0 && errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		return 0, b.exceeded
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// checkReferences returns an error if the reference list is too large, regardless of the transport.
func checkReferences(advertised *packp.AdvRefs, bound int64) error {
	const perLine = 4 + 40 + 1 + 1 // length, hash, space and line feed
	left := bound
	for name := range advertised.References {
		left -= int64(len(name)) + perLine
	}
	for name := range advertised.Peeled {
		left -= int64(len(name)) + perLine
	}
	if left < 0 {
		return refsTooLarge(bound)
	}
	return nil
}

// boundedTransport cuts off responses that are too large, and discards the text of error responses, which the server
// controls and which would otherwise reach the logs.
type boundedTransport struct {
	http.RoundTripper
	limits Limits
}

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
	bound := bounded{Reader: response.Body, left: t.limits.PackBytes, exceeded: packTooLarge(t.limits.PackBytes)}
	if r.Method == http.MethodGet {
		bound.left, bound.exceeded = t.limits.RefsBytes, refsTooLarge(t.limits.RefsBytes)
	}
	response.Body = &boundedBody{bound, response.Body}
	return response, nil
}

type boundedBody struct {
	bounded
	io.Closer
}
