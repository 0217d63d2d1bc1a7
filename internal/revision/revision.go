// Package revision formats and parses revisions of a source, such as main@sha1:HASH, as shown in reports and status.
package revision

import "strings"

// Directory is the revision text for a source without revisions, such as a directory that is not a repository.
const Directory = "directory"

const (
	algorithm = "sha1:"
	// fullLength is the number of digits in a full hash, and shortLength is the number in a short hash.
	fullLength, shortLength = 40, 7
)

// Revision identifies a commit and the reference that selected it. The zero value is the revision of a source
// without revisions.
type Revision struct{ ref, hash string }

// Of returns the revision of a commit. ref is empty if no reference selected the commit.
func Of(ref, hash string) Revision { return Revision{ref: ref, hash: hash} }

// Parse parses the text of one revision: ref@sha1:HASH, sha1:HASH, or directory. The text is untrusted, because anyone
// who can write a status can write any text. The hash must have lower-case digits. It may be abbreviated (see IsFull).
func Parse(text string) (Revision, bool) {
	if text == Directory {
		return Revision{}, true
	}
	ref, id, ok := cutRef(text)
	hash, hashed := strings.CutPrefix(id, algorithm)
	if !ok || !hashed || !isHex(hash) {
		return Revision{}, false
	}
	return Revision{ref: ref, hash: hash}, true
}

// IsCommit reports whether text names a commit in an accepted way: as a revision, or as a hash with or without a
// reference. The hash must be complete.
func IsCommit(text string) bool {
	_, id, ok := cutRef(text)
	return ok && IsHash(strings.TrimPrefix(id, algorithm))
}

// cutRef splits text into the reference, if any, and the rest. Git does not allow white space or colons in reference
// names.
func cutRef(text string) (ref, id string, ok bool) {
	at := strings.LastIndex(text, "@")
	if at < 0 {
		return "", text, true
	}
	ref, id = text[:at], text[at+1:]
	return ref, id, ref != "" && !strings.ContainsAny(ref, ": \t\n\f\r")
}

// IsHash reports whether text is the full hash of a commit.
func IsHash(text string) bool { return len(text) == fullLength && isHex(text) }

// SameCommit reports whether two texts name the same commit (see IsCommit). It ignores the reference and the prefix
// sha1:. Any other text is compared unchanged.
func SameCommit(a, b string) bool { return commitIn(a) == commitIn(b) }

func commitIn(text string) string {
	if r, ok := Parse(text); ok && r.hash != "" {
		return r.hash
	}
	if IsCommit(text) {
		_, id, _ := cutRef(text)
		return strings.TrimPrefix(id, algorithm)
	}
	return text
}

// String returns the revision in the form used by Flux, ref@sha1:HASH or sha1:HASH, or "directory" if there is no
// commit.
func (r Revision) String() string {
	switch {
	case r.hash == "":
		return Directory
	case r.ref == "":
		return algorithm + r.hash
	default:
		return r.ref + "@" + algorithm + r.hash
	}
}

// Ref returns the name of the branch or tag, or the full name of any other reference, or "" if the reference is
// unknown.
func (r Revision) Ref() string { return r.ref }

// Hash returns the hash of the commit, or "" for a source without revisions.
func (r Revision) Hash() string { return r.hash }

// IsFull reports whether the hash is the full hash of a commit.
func (r Revision) IsFull() bool { return IsHash(r.hash) }

// Short returns the hash, abbreviated as git does.
func (r Revision) Short() string { return r.hash[:min(len(r.hash), shortLength)] }

func isHex(text string) bool { return text != "" && strings.Trim(text, "0123456789abcdef") == "" }
