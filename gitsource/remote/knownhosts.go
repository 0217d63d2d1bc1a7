package remote

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// knownHosts holds the trusted ssh servers.
type knownHosts struct {
	path string
	db   *knownhosts.HostKeyDB
}

func readKnownHosts(path string) (knownHosts, error) {
	db, err := knownhosts.NewDB(path)
	if err != nil {
		return knownHosts{}, fmt.Errorf("known_hosts cannot be read: %w", safeError(err))
	}
	return knownHosts{path, db}, nil
}

// Signature algorithms of host keys, in order of preference. SHA-1 and DSA are excluded.
var (
	plainAlgorithms = []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512,
		ssh.KeyAlgoRSASHA256,
	}
	certificateAlgorithms = []string{
		ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
		ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
	}
)

// algorithms returns the algorithms to request from a host, so that the host presents a known key. These are the
// algorithms of its known keys. If an authority is known for the host, they include all certificate algorithms, because
// the type of the authority's key does not determine the type of the certified key. For an unknown host, all plain
// algorithms are requested, so that an error can show the key's fingerprint.
func (k knownHosts) algorithms(host string) []string {
	var wanted []string
	for _, key := range k.db.HostKeys(host) {
		switch {
		case key.Cert:
			wanted = append(wanted, certificateAlgorithms...)
		case key.Type() == ssh.KeyAlgoRSA:
			wanted = append(wanted, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		case slices.Contains(plainAlgorithms, key.Type()):
			wanted = append(wanted, key.Type())
		}
	}
	if len(wanted) == 0 {
		return plainAlgorithms
	}
	slices.SortStableFunc(wanted, func(a, b string) int { return rank(a) - rank(b) })
	return slices.Compact(wanted)
}

// rank orders certificates first, because they remain valid when a host gets new keys.
func rank(algorithm string) int {
	return slices.Index(append(slices.Clone(certificateAlgorithms), plainAlgorithms...), algorithm)
}

// check returns an error with instructions for the user if the host is not trusted.
func (k knownHosts) check(host string, at net.Addr, key ssh.PublicKey) error {
	err := k.db.HostKeyCallback()(host, at, key)
	if err == nil {
		return nil
	}
	name, offered := knownhosts.Normalize(host), fingerprint(key)
	if revoked, ok := errors.AsType[*xknownhosts.RevokedError](err); ok {
		return fmt.Errorf("the key of the host %s, %s, is marked @revoked on line %d of %s: "+
			"do not trust the host until it has a new key", name, offered, revoked.Revoked.Line, k.path)
	}
	mismatch, ok := errors.AsType[*xknownhosts.KeyError](err)
	switch {
	case !ok:
		return fmt.Errorf("the certificate of the host %s is not accepted: %w", name, safeError(err))
	case len(mismatch.Want) == 0:
		return fmt.Errorf("the host %s is not in %s: ask its administrators whether its key is %s; "+
			"if so, add this line to the file: %s", name, k.path, offered, knownhosts.Line([]string{host}, key))
	}
	return fmt.Errorf("the key of the host %s has changed: it is now %s, but %s contains %s. "+
		"This may be a man-in-the-middle attack. If the host's administrators confirm the new key, replace the old "+
		"key with this line: %s", name, offered, k.path, inLines(mismatch.Want), knownhosts.Line([]string{host}, key))
}

// inLines lists known keys with their line numbers.
func inLines(keys []xknownhosts.KnownKey) string {
	var all []string
	for _, key := range keys {
		all = append(all, fmt.Sprintf("%s on line %d", fingerprint(key.Key), key.Line))
	}
	return strings.Join(all, ", ")
}

// fingerprint returns a key's fingerprint as shown by ssh-keygen.
func fingerprint(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }
