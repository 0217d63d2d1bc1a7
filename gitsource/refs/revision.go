package refs

// Revision is what was read.
type Revision struct {
	// Name of the branch or of the tag, or of another reference in full; empty if a commit was
	// asked for by its hash, or HEAD was detached.
	Name string
	// Commit is its hash, 40 hexadecimal digits; empty for a directory that is no
	// repository.
	Commit string
	// Signer names who signed it, where signatures are verified.
	Signer string
	// Committed is when it was committed, as it says itself, in seconds since 1970; 0 if that is not known.
	Committed int64
}

// String returns the form that Flux uses: main@sha1:HASH or sha1:HASH; "directory" where
// there is no repository.
func (r Revision) String() string {
	switch {
	case r.Commit == "":
		return "directory"
	case r.Name == "":
		return "sha1:" + r.Commit
	default:
		return r.Name + "@sha1:" + r.Commit
	}
}
