// Package signature verifies who signed a git commit or tag. It checks the bytes of the object, as git stores it,
// against PGP and SSH public keys. Its only I/O is reading keys, and the current time is an argument.
//
// It is stricter than git. It rejects objects that git and another program might read differently: duplicate or
// reordered headers, a second signature, or anything after a signature. The validity of a key depends on the current
// time, never on the time in the signature: a signer can write any time into it, even with a stolen key.
package signature

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"quorate.dev/quorate/internal/printable"
)

// Mode specifies what must be signed in a revision. If it is empty, signatures are not required.
type Mode string

// Modes that require a signature.
const (
	Commit       Mode = "commit"
	Tag          Mode = "tag"
	TagAndCommit Mode = "tag-and-commit"
)

// Check returns an error if the mode does not exist.
func (m Mode) Check() error {
	switch m {
	case "", Commit, Tag, TagAndCommit:
		return nil
	}
	return fmt.Errorf("%q cannot be verified: expected commit, tag or tag-and-commit", string(m))
}

// OfTag reports whether the tag must be signed.
func (m Mode) OfTag() bool { return m == Tag || m == TagAndCommit }

// OfCommit reports whether the commit must be signed.
func (m Mode) OfCommit() bool { return m == Commit || m == TagAndCommit }

// Keys are the public keys of the trusted signers. The zero value has no keys and rejects every signature.
type Keys struct {
	pgp openpgp.EntityList
	ssh []sshKey
	// files holds the files from which the keys were read.
	files []keyFile
}

// Empty reports whether there are no keys.
func (k Keys) Empty() bool { return len(k.pgp)+len(k.ssh) == 0 }

// String lists the fingerprints.
func (k Keys) String() string {
	var all []string
	for _, entity := range k.pgp {
		all = append(all, pgpFingerprint(entity.PrimaryKey))
	}
	for _, key := range k.ssh {
		all = append(all, key.fingerprint())
	}
	return strings.Join(all, ", ")
}

// Signer is a trusted signer.
type Signer struct {
	// Fingerprint is the fingerprint of the key, as gpg and ssh-keygen write it: for PGP, the fingerprint of the
	// primary key, in hexadecimal digits; for SSH, SHA256:….
	Fingerprint string
	// Identity is the signer's name in the list of keys: a user ID of the PGP key, the principals of an allowed signer,
	// or the comment of an SSH key. It may be empty.
	Identity string
}

// String names the signer on one line.
func (s Signer) String() string {
	if s.Identity == "" {
		return s.Fingerprint
	}
	return fmt.Sprintf("%s (%s)", s.Fingerprint, printable.Text(s.Identity))
}

var errUnsigned = errors.New("it is not signed")

// Commit returns the signer of a commit, given as git stores it, without its type and length. The error reports why the
// commit is not trusted.
func (k Keys) Commit(raw []byte, now time.Time) (Signer, error) {
	object, err := parseCommit(raw)
	if err != nil {
		return Signer{}, err
	}
	return k.verify(object, now)
}

// Tag returns the signer of a tag object, given as git stores it. The name in the object must equal name, without
// refs/tags/: a tag that was signed under one name must not be republished under another name. The error reports why
// the tag is not trusted.
func (k Keys) Tag(raw []byte, name string, now time.Time) (Signer, error) {
	object, err := parseTag(raw)
	if err != nil {
		return Signer{}, err
	}
	if object.name != name {
		return Signer{}, fmt.Errorf("it was created as the tag %q, not as %q", object.name, name)
	}
	return k.verify(object.signed, now)
}

// Target returns the hash of the commit that a tag object names, given as git stores it. It returns an error if the
// target is not a commit, for example another tag.
func Target(raw []byte) (string, error) {
	object, err := parseTag(raw)
	return object.target, err
}

func (k Keys) verify(object signed, now time.Time) (Signer, error) {
	if len(object.signature) == 0 {
		return Signer{}, errUnsigned
	}
	format, err := formatOf(object.signature)
	if err != nil {
		return Signer{}, err
	}
	if format == formatSSH {
		return k.verifySSH(object, now)
	}
	return k.verifyPGP(object, now)
}

// unreadable returns an error for a signature that cannot be parsed. The error contains only a safe part of the cause.
func unreadable(err error) error {
	const most = 200
	return fmt.Errorf("its signature cannot be read: %s", printable.Text(fmt.Sprintf("%.*s", most, err)))
}

var errTampered = errors.New(
	"its signature does not match its content: " +
		"it was changed after it was signed, or the signature was copied from another object")
