package gitsource

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/internal/printable"
)

// maxNameBytes is the maximum length of a reference name and of a signer's name.
const maxNameBytes = 4 << 10

// check checks the revision that the fetcher has opened. A compromised fetcher can present arbitrary files and commits,
// as the server can, and claim that they are signed. However, the revision must match the selector, and its text must
// be printable.
func (c *conversation) check(r refs.Revision) error {
	if c.reading != nil {
		select {
		case <-c.reading.ended:
		default:
			return errors.New("invalid response from the fetch process: it opened a different revision during a read")
		}
	}
	signer := r.Signer
	r.Signer, r.Committed = "", 0 // any commit time is accepted: nothing depends on it
	switch {
	case !c.plausible(r), !c.meant(r):
		return fmt.Errorf("invalid response from the fetch process: the opened revision does not match the %s",
			c.options.Selector)
	case (signer != "") != (c.options.Verify.Mode != "") || len(signer) > maxNameBytes || !printable.Is(signer):
		return errors.New("invalid response from the fetch process: the signer of the opened revision is missing or " +
			"unexpected")
	}
	return nil
}

// meant reports whether r is the requested commit, or no specific commit was requested.
func (c *conversation) meant(r refs.Revision) bool {
	return c.options.Selector.Commit == "" || r.Commit == c.options.Selector.Commit
}

// plausible reports whether the selector could find r in the source.
func (c *conversation) plausible(r refs.Revision) bool {
	o := c.options
	if r == (refs.Revision{}) { // the source has no revisions
		return !isRemote(o.Location) && o.Selector == (refs.Selector{}) && o.Verify.Mode == ""
	}
	return plumbing.IsHash(r.Commit) && r.Signer == "" && len(r.Name) <= maxNameBytes && printable.Is(r.Name) &&
		o.Selector.Admits(r)
}
