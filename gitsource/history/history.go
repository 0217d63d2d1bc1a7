// Package history determines whether one commit descends from another.
package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// ErrCutOff is matched by errors that report that the history ends too early to determine the ancestry: the repository
// is a shallow clone, or not all commits were fetched.
var ErrCutOff = errors.New("the history is incomplete")

// ErrGone is matched by errors that report that the newer commit does not exist.
var ErrGone = errors.New("it does not exist")

// Descends reports whether the commit newer descends from the commit older, or is that commit. shallow lists the
// commits whose parents are missing. It reads up to about limit commits. If the ancestry cannot be determined, it
// returns an error.
func Descends(
	ctx context.Context, store storer.EncodedObjectStorer, shallow []plumbing.Hash, newer,
	older plumbing.Hash, limit int,
) (bool, error) {
	cut := map[plumbing.Hash]bool{}
	for _, hash := range shallow {
		cut[hash] = true
	}
	seen, queue, cutOff := map[plumbing.Hash]bool{newer: true}, []plumbing.Hash{newer}, false
	for ; len(queue) > 0; queue = queue[1:] {
		hash := queue[0]
		if hash == older {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if len(seen) > limit {
			return false, fmt.Errorf("%w: %s has more than %d ancestors", ErrCutOff, newer, limit)
		}
		if cut[hash] {
			cutOff = true
			continue
		}
		commit, err := gitobject.GetCommit(store, hash)
		if err != nil {
			return false, unread(hash, hash == newer, err)
		}
		for _, parent := range commit.ParentHashes {
			if !seen[parent] {
				seen[parent], queue = true, append(queue, parent)
			}
		}
	}
	if cutOff {
		return false, fmt.Errorf("%w: the %d known commits up to %s do not include %s", ErrCutOff, len(seen),
			newer, older)
	}
	return false, nil
}

// unread returns an error for a commit that could not be read.
func unread(hash plumbing.Hash, newer bool, err error) error {
	if newer && errors.Is(err, plumbing.ErrObjectNotFound) {
		err = ErrGone
	}
	return fmt.Errorf("read the commit %s: %w", hash, err)
}
