package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"
)

// openRemote fetches the one commit that o names from a smart HTTP server, into memory.
func openRemote(ctx context.Context, o Options) (fs.FS, Revision, error) {
	client, err := o.Auth.client()
	if err != nil {
		return nil, Revision{}, err
	}
	defer client.CloseIdleConnections()
	endpoint, err := transport.NewEndpoint(o.Location)
	if err != nil {
		return nil, Revision{}, optionsErrorf("the source is not a valid URL")
	}
	session, err := githttp.NewClient(client).NewUploadPackSession(endpoint, o.Auth.method())
	if err != nil {
		return nil, Revision{}, sourceError(err, "connect to %s", o.Location)
	}
	defer session.Close()

	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, Revision{}, remoteError(ctx, err, o)
	}
	revision, err := resolveRemote(refs, o)
	if err != nil {
		return nil, Revision{}, err
	}
	store := memory.NewStorage()
	if err := fetchPack(ctx, session, uploadRequest(refs, revision), store); err != nil {
		return nil, Revision{}, remoteError(ctx, err, o)
	}
	return openCommit(store, revision, o.Location)
}

// resolveRemote finds what o names among the references that the server shows. The hash
// may be that of a tag object.
func resolveRemote(refs *packp.AdvRefs, o Options) (Revision, error) {
	switch {
	case o.Commit != "":
		return Revision{Commit: o.Commit}, nil
	case o.Branch != "":
		return remoteReference(refs, plumbing.NewBranchReferenceName(o.Branch), o)
	case o.Tag != "":
		return remoteReference(refs, plumbing.NewTagReferenceName(o.Tag), o)
	case refs.Head == nil:
		return Revision{}, sourceErrorf("%s has no commit at HEAD; name a branch", o.Location)
	}
	return revisionOf(remoteHead(refs), *refs.Head), nil
}

func remoteReference(refs *packp.AdvRefs, name plumbing.ReferenceName, o Options) (Revision, error) {
	hash, ok := refs.References[name.String()]
	if !ok {
		return Revision{}, missingReference(name, o.Location)
	}
	return revisionOf(name, hash), nil
}

// remoteHead is the branch that HEAD names; HEAD itself where the server does not tell.
func remoteHead(refs *packp.AdvRefs) plumbing.ReferenceName {
	for _, symref := range refs.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(symref, "HEAD:"); ok {
			return plumbing.ReferenceName(target)
		}
	}
	return plumbing.HEAD
}

// uploadRequest asks for one commit without its history. Where the server gives out no
// commit by its hash, it asks for all branches and tags with their history: the commit is
// among them or cannot be had.
func uploadRequest(refs *packp.AdvRefs, r Revision) *packp.UploadPackRequest {
	request := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	if refs.Capabilities.Supports(capability.NoProgress) {
		_ = request.Capabilities.Set(capability.NoProgress)
	}
	want := plumbing.NewHash(r.Commit)
	if !givesOut(refs, want) {
		for _, hash := range refs.References {
			request.Wants = append(request.Wants, hash)
		}
		plumbing.HashesSort(request.Wants)
		request.Wants = slices.Compact(request.Wants)
		return request
	}
	request.Wants = []plumbing.Hash{want}
	if refs.Capabilities.Supports(capability.Shallow) {
		_ = request.Capabilities.Set(capability.Shallow)
		request.Depth = packp.DepthCommits(1)
	}
	return request
}

// givesOut says whether the server will answer a request for that very hash.
func givesOut(refs *packp.AdvRefs, want plumbing.Hash) bool {
	if refs.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
		return true
	}
	for _, hash := range refs.References {
		if hash == want {
			return true
		}
	}
	return refs.Head != nil && *refs.Head == want
}

// remoteError says what a person can do. It repeats nothing that the server wrote.
func remoteError(ctx context.Context, err error, o Options) error {
	switch {
	case ctx.Err() != nil:
		return sourceError(ctx.Err(), "fetch %s", o.Location)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return sourceErrorf("%s is empty; push a commit to it", o.Location)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		if o.Auth.given() {
			return sourceErrorf("%s refused the credentials (%s)", o.Location, o.Auth)
		}
		return sourceErrorf("%s asks for credentials, and none are given", o.Location)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return sourceErrorf("%s is not there, or is not shown without credentials", o.Location)
	}
	_, garbled := errors.AsType[*packp.ErrUnexpectedData](err)
	if garbled || errors.Is(err, pktline.ErrInvalidPktLen) || errors.Is(err, packp.ErrEmptyInput) || errors.Is(err, io.ErrUnexpectedEOF) {
		return sourceErrorf("%s does not answer as a smart HTTP server of a repository with SHA-1 does; is it the URL to clone from, and did the answer arrive whole?", o.Location)
	}
	// The URL is in the message already; what failed is enough.
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return sourceError(printable(err), "fetch %s", o.Location)
}

// printable keeps what a server wrote from reaching a terminal as it is.
func printable(err error) error {
	const most = 500
	text := err.Error()
	if len(text) <= most && isPrintable(text) {
		return err
	}
	return fmt.Errorf("%.*q", most, text)
}
