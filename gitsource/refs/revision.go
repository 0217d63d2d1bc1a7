package refs

import "quorate.dev/quorate/internal/revision"

// Revision identifies the content that was read.
type Revision struct {
	// Name is the name of the branch or tag, or the full name of another reference. It is empty if a commit was
	// selected by hash, or if HEAD is detached.
	Name string
	// Commit is the commit hash, 40 hexadecimal digits. It is empty if the source has no revisions.
	Commit string
	// Signer names the signer if signatures are verified.
	Signer string
	// Committed is the commit time recorded in the commit, in seconds since 1970, or 0 if unknown.
	Committed int64
}

// String returns the text that internal/revision parses: main@sha1:HASH, sha1:HASH or directory.
func (r Revision) String() string { return revision.Of(r.Name, r.Commit).String() }
