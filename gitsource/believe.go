package gitsource

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/visible"
)

// maxNameBytes of a reference, and of who signed.
const maxNameBytes = 4 << 10

// believe holds the process that fetches to what a source can be found to be. Whoever has taken it
// over can show files and commits of their own, as the server can, and say that they are signed;
// but it is what was asked for by its name, and it is text.
func (c *conversation) believe(r refs.Revision) error {
	if c.reading != nil {
		select {
		case <-c.reading.ended:
		default:
			return errors.New("believe the process that fetches: it opens another revision while one is read")
		}
	}
	signer := r.Signer
	r.Signer, r.Committed = "", 0 // it may say any time: nothing depends on it
	switch {
	case !c.believable(r), !c.meant(r):
		return fmt.Errorf("believe the process that fetches: what it has opened is not the %s", c.options.Selector)
	case (signer != "") != (c.options.Verify.Mode != "") || len(signer) > maxNameBytes || !visible.Is(signer):
		return errors.New("believe the process that fetches: it does not say who signed what it has opened")
	}
	return nil
}

// meant says whether a revision is the commit that was asked for, where one is.
func (c *conversation) meant(r refs.Revision) bool {
	return c.options.Selector.Commit == "" || r.Commit == c.options.Selector.Commit
}

// believable says whether the source may have such a revision.
func (c *conversation) believable(r refs.Revision) bool {
	o := c.options
	if r == (refs.Revision{}) { // a directory
		return !isRemote(o.Location) && o.Selector == (refs.Selector{}) && o.Verify.Mode == ""
	}
	return plumbing.IsHash(r.Commit) && r.Signer == "" && len(r.Name) <= maxNameBytes && visible.Is(r.Name) &&
		o.Selector.Admits(r)
}
