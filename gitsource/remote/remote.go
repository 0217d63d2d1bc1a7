// Package remote asks a git server for its references, and for single commits. It trusts no answer: sizes are bounded, and nothing that a server writes is
// repeated as it is.
package remote

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"quorate.dev/quorate/gitsource/refs"
)

// Repository is where a repository is, and how to get at it.
type Repository struct {
	// URL of a smart HTTP(S) server or of an ssh server, or user@host:path for the latter.
	URL string
	// Auth is for repositories that are not public.
	Auth Auth
	// Proxy is the URL of the proxy to go through, of scheme http, https or socks5. Without it the environment names the one for HTTP(S).
	Proxy string
}

// Session is a connection to a server that has shown its references.
type Session struct {
	repository Repository
	upload     transport.UploadPackSession
	advertised *packp.AdvRefs
	close      func()
	// elsewhere is the server that the repository's own redirected to, if it did.
	elsewhere func() string
}

// Open connects, and reads the list of references. Whoever opens a session closes it.
func Open(ctx context.Context, r Repository) (*Session, error) {
	address, err := r.address()
	if err != nil {
		return nil, err
	}
	s := &Session{repository: r, close: func() {}, elsewhere: func() string { return "" }}
	if err := s.open(ctx, address); err != nil {
		s.Close()
		return nil, s.explain(ctx, err)
	}
	return s, nil
}

func (s *Session) open(ctx context.Context, address *url.URL) (err error) {
	if address.Scheme == "ssh" {
		upload, err := openSSH(ctx, s.repository, address)
		if err != nil {
			return err
		}
		s.upload = upload
	} else {
		client, err := newHTTPClient(s.repository, address)
		if err != nil {
			return told{err}
		}
		s.close, s.elsewhere = client.close, func() string { return client.redirected }
		if s.upload, err = client.open(ctx, s.repository.Auth); err != nil {
			return err
		}
	}
	s.advertised, err = s.upload.AdvertisedReferencesContext(ctx)
	return err
}

// Close ends the connection.
func (s *Session) Close() {
	if s.upload != nil {
		_ = s.upload.Close()
	}
	s.close()
}

// References returns what the server has shown.
func (s *Session) References() refs.List {
	list := refs.List{ByName: s.advertised.References}
	if s.advertised.Head == nil {
		return list
	}
	list.Head, list.HeadName = *s.advertised.Head, plumbing.HEAD
	for _, symref := range s.advertised.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(symref, "HEAD:"); ok {
			list.HeadName = plumbing.ReferenceName(target)
		}
	}
	return list
}

// Fetch puts what the hash names, a commit or a tag object, into the store, without its history where the server allows that.
func (s *Session) Fetch(ctx context.Context, hash plumbing.Hash, store storer.EncodedObjectStorer) error {
	if err := fetchPack(ctx, s.upload, s.request(hash), store); err != nil {
		return s.explain(ctx, err)
	}
	return nil
}

// request asks for one commit without its history. Where the server gives out no commit by its hash, it asks for all branches and tags with their
// history: the commit is among them or cannot be had.
func (s *Session) request(want plumbing.Hash) *packp.UploadPackRequest {
	request := packp.NewUploadPackRequestFromCapabilities(s.advertised.Capabilities)
	if s.advertised.Capabilities.Supports(capability.NoProgress) {
		_ = request.Capabilities.Set(capability.NoProgress)
	}
	if !s.givesOut(want) {
		for _, hash := range s.advertised.References {
			request.Wants = append(request.Wants, hash)
		}
		plumbing.HashesSort(request.Wants)
		request.Wants = slices.Compact(request.Wants)
		return request
	}
	request.Wants = []plumbing.Hash{want}
	if s.advertised.Capabilities.Supports(capability.Shallow) {
		_ = request.Capabilities.Set(capability.Shallow)
		request.Depth = packp.DepthCommits(1)
	}
	return request
}

// givesOut says whether the server will answer a request for that very hash.
func (s *Session) givesOut(want plumbing.Hash) bool {
	if s.advertised.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
		return true
	}
	for _, hash := range s.advertised.References {
		if hash == want {
			return true
		}
	}
	return s.advertised.Head != nil && *s.advertised.Head == want
}
