package signature

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"quorate.dev/quorate/internal/printable"
)

// gitNamespace is the namespace of git signatures. Signatures of files, emails or logins have other namespaces and are
// not valid in git.
const gitNamespace = "git"

// sshTypes lists the allowed key types. DSA is too weak, and certificates would require checking their authority.
var sshTypes = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA,
	ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
}

// sshKey is one line of a list of keys. A zero time is not a limit. If namespaces is empty, all namespaces are allowed.
type sshKey struct {
	key         ssh.PublicKey
	identity    string
	namespaces  []string
	from, until time.Time
}

func (k sshKey) fingerprint() string { return ssh.FingerprintSHA256(k.key) }

func (k sshKey) signer() Signer { return Signer{Fingerprint: k.fingerprint(), Identity: k.identity} }

// usable returns an error if the key may not sign in git at now. The validity period is compared with the current time.
// Git compares it with the date in the commit, which the holder of an old key can choose.
func (k sshKey) usable(now time.Time) error {
	switch {
	case len(k.namespaces) > 0 && !slices.ContainsFunc(k.namespaces, matchesGit):
		return fmt.Errorf("it is signed with the key %s, which is allowed in the namespaces %s, but not in \"git\"",
			k.signer(), quoted(k.namespaces))
	case !k.from.IsZero() && now.Before(k.from):
		return fmt.Errorf("it is signed with the key %s, which is not valid before %s", k.signer(), utc(k.from))
	case !k.until.IsZero() && !now.Before(k.until):
		return fmt.Errorf("it is signed with the key %s, which was valid until %s", k.signer(), utc(k.until))
	}
	return nil
}

func matchesGit(pattern string) bool {
	ok, err := path.Match(pattern, gitNamespace)
	return ok && err == nil
}

func quoted(list []string) string { return fmt.Sprintf("%q", list) }

// verifySSH returns the signer if one of the keys created the signature and is valid at now.
func (k Keys) verifySSH(object signed, now time.Time) (Signer, error) {
	block, rest := pem.Decode(object.signature)
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return Signer{}, unreadable(errors.New("its armor is damaged"))
	}
	signature, err := sshsig.ParseSignature(block.Bytes)
	if err != nil {
		return Signer{}, unreadable(err)
	}
	if _, ok := signature.PublicKey.(*ssh.Certificate); ok {
		return Signer{}, errors.New("it is signed with an SSH certificate, which is not supported; sign with a key")
	}
	if signature.Namespace != gitNamespace {
		const most = 50
		return Signer{}, fmt.Errorf("its SSH signature is for the namespace %.*q, not for \"git\"", most,
			signature.Namespace)
	}
	if !slices.Contains(sshTypes, signature.PublicKey.Type()) {
		return Signer{}, fmt.Errorf("it is signed with a key of type %s, which is not supported",
			printable.Text(signature.PublicKey.Type()))
	}
	if err := sshsig.Verify(bytes.NewReader(object.payload), signature, signature.PublicKey, signature.HashAlgorithm,
		gitNamespace); err != nil {
		return Signer{}, errTampered
	}
	return k.whoseSSH(signature.PublicKey, now)
}

// whoseSSH returns the signer to which a key belongs.
func (k Keys) whoseSSH(public ssh.PublicKey, now time.Time) (Signer, error) {
	err := fmt.Errorf("it is signed with the SSH key %s, which is not one of the trusted keys",
		ssh.FingerprintSHA256(public))
	for _, listed := range k.ssh {
		if !bytes.Equal(listed.key.Marshal(), public.Marshal()) {
			continue
		}
		if err = listed.usable(now); err == nil {
			return listed.signer(), nil
		}
	}
	return Signer{}, err
}
