package gitsource

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"quorate.dev/quorate/gitsource/gittree"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/signature"
)

// Verification specifies what must be signed in a revision, and with which keys. The zero value requires nothing.
type Verification struct {
	// Mode defaults to signature.Commit if there are keys.
	Mode signature.Mode
	Keys signature.Keys
}

// normalized sets the default mode, and checks that the selected revision can be verified.
func (v Verification) normalized(s refs.Selector) (Verification, error) {
	if v.Mode == "" && !v.Keys.Empty() {
		v.Mode = signature.Commit
	}
	if err := v.Mode.Check(); err != nil {
		return v, err
	}
	isTag := s.Tag != "" || s.SemVer != "" || plumbing.ReferenceName(s.Name).IsTag()
	if v.Mode.OfTag() && !isTag {
		return v, fmt.Errorf("to verify the signature of a tag, name the tag or a range of versions, not the %s", s)
	}
	return v, nil
}

// open returns the files of a revision, and the revision with its commit and signer. r.Commit is the hash of a commit,
// or of a tag of a commit.
func (v Verification) open(store storer.EncodedObjectStorer, r refs.Revision) (gittree.Tree, refs.Revision, error) {
	var err error
	if v.Mode != "" {
		store = hashedObjects{store}
		if r, err = v.verify(store, r, time.Now()); err != nil {
			return gittree.Tree{}, r, err
		}
	}
	tree, commit, err := gittree.Open(store, plumbing.NewHash(r.Commit))
	r.Commit, r.Committed = commit.Hash.String(), commit.Committed
	return tree, r, err
}

// verify returns the revision with its commit and signer, or an error if a required signature is missing or invalid.
func (v Verification) verify(store storer.EncodedObjectStorer, r refs.Revision, now time.Time) (refs.Revision, error) {
	if v.Keys.Empty() {
		return r, errors.New("no keys to verify signatures with")
	}
	kind, raw, err := rawObject(store, r.Commit)
	if err != nil {
		return r, err
	}
	var signers []string
	if kind == plumbing.TagObject {
		if signers, r.Commit, err = v.verifyTag(raw, r.Name, now); err != nil {
			return r, fmt.Errorf("verify the tag: %w", err)
		}
		if kind, raw, err = rawObject(store, r.Commit); err != nil {
			return r, err
		}
	} else if v.Mode.OfTag() {
		return r, errors.New("verify the tag: it is lightweight and cannot be signed; create it with git tag --sign")
	}
	if kind != plumbing.CommitObject {
		return r, fmt.Errorf("%s is a %s, not a commit", r.Commit, kind)
	}
	if v.Mode.OfCommit() {
		signer, err := v.Keys.Commit(raw, now)
		if err != nil {
			return r, fmt.Errorf("verify the commit: %w", err)
		}
		signers = append(signers, signer.String())
	}
	r.Signer = strings.Join(slices.Compact(signers), ", ")
	return r, nil
}

// verifyTag returns the commit that a tag object names, and the signer if tags must be signed.
func (v Verification) verifyTag(raw []byte, name string, now time.Time) (signers []string, commit string, err error) {
	if v.Mode.OfTag() {
		signer, err := v.Keys.Tag(raw, name, now)
		if err != nil {
			return nil, "", err
		}
		signers = append(signers, signer.String())
	}
	commit, err = signature.Target(raw)
	return signers, commit, err
}

// rawObject returns the type and the raw content of an object.
func rawObject(store storer.EncodedObjectStorer, hash string) (plumbing.ObjectType, []byte, error) {
	object, err := store.EncodedObject(plumbing.AnyObject, plumbing.NewHash(hash))
	if err != nil {
		return plumbing.InvalidObject, nil, err
	}
	raw, err := contentOf(object)
	return object.Type(), raw, err
}

func contentOf(object plumbing.EncodedObject) ([]byte, error) {
	r, err := object.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// hashedObjects is a store that returns only objects whose content matches the requested hash. A signature covers the
// hash of a tree, not its files, so it is only as reliable as the hashes. Objects from a server are checked on arrival;
// without this check, objects in a local repository would be trusted without verification.
type hashedObjects struct{ storer.EncodedObjectStorer }

// EncodedObject returns an object, or an error if its content does not match its hash.
func (h hashedObjects) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	stored, err := h.EncodedObjectStorer.EncodedObject(kind, hash)
	if err != nil {
		return nil, err
	}
	content, err := contentOf(stored)
	if err != nil {
		return nil, err
	}
	if plumbing.ComputeHash(stored.Type(), content) != hash {
		return nil, fmt.Errorf("the content of the object %s does not match its hash", hash)
	}
	object := &plumbing.MemoryObject{}
	object.SetType(stored.Type())
	_, err = object.Write(content)
	return object, err
}
