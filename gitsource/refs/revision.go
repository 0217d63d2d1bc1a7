package refs

// Revision identifies what was read.
type Revision struct {
	// Name is the name of the branch or tag, or the full name of another reference. It is empty if a commit was
	// selected by hash, or if HEAD is detached.
	Name string
	// Commit is the commit hash, 40 hexadecimal digits. It is empty for a directory that is not a repository.
	Commit string
	// Signer names the signer if signatures are verified.
	Signer string
	// Committed is the commit time recorded in the commit, in seconds since 1970, or 0 if unknown.
	Committed int64
}

// String returns the form used by Flux: main@sha1:HASH or sha1:HASH. It returns "directory" if there is no repository.
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
