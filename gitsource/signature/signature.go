// Package signature says who signed a commit or a tag of git: it checks the bytes of the object, as
// git stores it, against public keys, PGP's and SSH's. It does no I/O but reading keys, and the
// clock is an argument.
//
// It is stricter than git. What git reads in one way and another program might read in another is
// refused: headers twice or in another order, a second signature, anything after a signature.
// Whether a key is still valid is asked of the clock, never of the signature: the time in a
// signature is whatever its maker wrote, also with a stolen key.
package signature

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"quorate.dev/quorate/visible"
)

// Mode says what of a revision must be signed. Nothing, if it is empty.
type Mode string

// The modes.
const (
	Commit       Mode = "commit"
	Tag          Mode = "tag"
	TagAndCommit Mode = "tag-and-commit"
)

// Check returns an error if there is no such mode.
func (m Mode) Check() error {
	switch m {
	case "", Commit, Tag, TagAndCommit:
		return nil
	}
	return fmt.Errorf("%q cannot be verified: want commit, tag or tag-and-commit", string(m))
}

// OfTag says whether the tag must be signed.
func (m Mode) OfTag() bool { return m == Tag || m == TagAndCommit }

// OfCommit says whether the commit must be signed.
func (m Mode) OfCommit() bool { return m == Commit || m == TagAndCommit }

// Keys are the public keys of those who may sign. The zero value has none, and verifies nothing.
type Keys struct {
	pgp openpgp.EntityList
	ssh []sshKey
	// files are what they were read from.
	files []keyFile
}

// Empty says whether there are no keys.
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

// Signer is one of those who may sign.
type Signer struct {
	// Fingerprint of the key, as gpg and ssh-keygen write it: of a PGP key that of the primary key,
	// in hexadecimal digits; of an SSH key SHA256:….
	Fingerprint string
	// Identity is what the list of keys says who that is: a user ID of the PGP key, the principals
	// of an allowed signer, or the comment of an SSH key. It may be empty.
	Identity string
}

// String names the signer on one line.
func (s Signer) String() string {
	if s.Identity == "" {
		return s.Fingerprint
	}
	return fmt.Sprintf("%s (%s)", s.Fingerprint, visible.Text(s.Identity))
}

var errUnsigned = errors.New("it is not signed")

// Commit says who signed a commit, given as git stores it, without its type and length. Its error
// says why the commit is not to be trusted.
func (k Keys) Commit(raw []byte, now time.Time) (Signer, error) {
	object, err := parseCommit(raw)
	if err != nil {
		return Signer{}, err
	}
	return k.verify(object, now)
}

// Tag says who signed a tag object, given as git stores it. The name within must be that name,
// without refs/tags/: a tag that was signed under one name must not be republished under another.
// Its error says why the tag is not to be trusted.
func (k Keys) Tag(raw []byte, name string, now time.Time) (Signer, error) {
	object, err := parseTag(raw)
	if err != nil {
		return Signer{}, err
	}
	if object.name != name {
		return Signer{}, fmt.Errorf("it was made as the tag %q, not as %q", object.name, name)
	}
	return k.verify(object.signed, now)
}

// Target returns the hash of the commit that a tag object, given as git stores it, is of. It is an
// error if it is of anything else, as of another tag.
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

// unreadable says that a signature is none, without repeating what its maker wrote.
func unreadable(err error) error {
	const most = 200
	return fmt.Errorf("its signature cannot be read: %s", visible.Text(fmt.Sprintf("%.*s", most, err)))
}

var errTampered = errors.New(
	"its signature is over other content: " +
		"it was changed after it was signed, or the signature was taken from elsewhere")
