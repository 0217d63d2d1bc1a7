package signature

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// strongHashes lists the hashes that are allowed in PGP signatures. MD5, SHA-1 and RIPEMD-160 are not allowed.
var strongHashes = []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA224, crypto.SHA3_256,
	crypto.SHA3_512}

// verifyPGP returns the signer if one of the keys created the signature and is valid at now.
func (k Keys) verifyPGP(object signed, now time.Time) (Signer, error) {
	signature, body, err := readPGP(object.signature)
	if err != nil {
		return Signer{}, err
	}
	if err := checkPGP(signature, now); err != nil {
		return Signer{}, err
	}
	keys := k.pgp.KeysById(*signature.IssuerKeyId)
	if len(keys) == 0 {
		return Signer{}, fmt.Errorf("its signature names the PGP key %s, which is not one of the trusted keys",
			issuerOf(signature))
	}
	signer := pgpSigner(keys[0].Entity)
	config := &packet.Config{Time: func() time.Time { return now }}
	made, entity, err := openpgp.VerifyDetachedSignatureAndHash(k.pgp, bytes.NewReader(object.payload),
		bytes.NewReader(body), strongHashes, config)
	if err != nil {
		return Signer{}, explainPGP(err, signer)
	}
	if err := checkPGPKey(made, entity, now); err != nil {
		return Signer{}, err
	}
	return pgpSigner(entity), nil
}

// readPGP returns the only signature in the armor, parsed and raw.
func readPGP(text []byte) (*packet.Signature, []byte, error) {
	block, err := armor.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, nil, unreadable(err)
	}
	body, err := io.ReadAll(block.Body)
	if err != nil {
		return nil, nil, unreadable(err)
	}
	packets := packet.NewOpaqueReader(bytes.NewReader(body))
	first, err := packets.Next()
	if err != nil {
		return nil, nil, unreadable(err)
	}
	if another, err := packets.Next(); err == nil && another.Tag == first.Tag {
		return nil, nil, errSeveral
	} else if !errors.Is(err, io.EOF) {
		return nil, nil, errAfter
	}
	parsed, err := first.Parse()
	if err != nil {
		return nil, nil, unreadable(err)
	}
	signature, ok := parsed.(*packet.Signature)
	if !ok || signature.IssuerKeyId == nil {
		return nil, nil, unreadable(errors.New("it is not a signature, or does not name its key"))
	}
	return signature, body, nil
}

// checkPGP checks the properties that a signature declares.
func checkPGP(signature *packet.Signature, now time.Time) error {
	switch {
	case signature.Version != 4 && signature.Version != 6:
		return fmt.Errorf("its PGP signature has version %d; versions 4 and 6 are supported", signature.Version)
	case signature.SigType != packet.SigTypeBinary:
		return fmt.Errorf("its PGP signature has type 0x%02x; git creates signatures of type 0x00 (binary)",
			uint8(signature.SigType))
	case !slices.Contains(strongHashes, signature.Hash):
		return fmt.Errorf("its PGP signature uses the weak hash algorithm %s, so it could be forged", signature.Hash)
	case signature.CreationTime.After(now):
		return fmt.Errorf("its PGP signature is dated %s, which is in the future; check the clocks",
			utc(signature.CreationTime))
	}
	return nil
}

// checkPGPKey adds checks that the library omits: a revocation applies regardless of its date, and a key cannot sign
// before it is created.
func checkPGPKey(signature *packet.Signature, entity *openpgp.Entity, now time.Time) error {
	signer := pgpSigner(entity)
	if len(entity.Revocations) > 0 {
		return revokedError(signer)
	}
	for _, key := range (openpgp.EntityList{entity}).KeysById(*signature.IssuerKeyId) {
		if len(key.Revocations) > 0 {
			return revokedError(signer)
		}
		if signature.CreationTime.Before(key.PublicKey.CreationTime) || key.PublicKey.CreationTime.After(now) {
			return fmt.Errorf("it is signed with the key %s, but the signature is dated before the key was "+
				"created", signer)
		}
	}
	return nil
}

func explainPGP(err error, signer Signer) error {
	switch {
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return revokedError(signer)
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return fmt.Errorf("it is signed with the key %s, which has expired; extend the key and add the new public "+
			"key, or sign with a different key", signer)
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return fmt.Errorf("its signature by %s has expired", signer)
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return fmt.Errorf("it names the key %s, which is not a signing key", signer)
	}
	if _, ok := errors.AsType[pgperrors.SignatureError](err); ok {
		return errTampered
	}
	return unreadable(err)
}

func revokedError(signer Signer) error {
	return fmt.Errorf("it is signed with the key %s, which is revoked", signer)
}

func pgpSigner(entity *openpgp.Entity) Signer {
	return Signer{Fingerprint: pgpFingerprint(entity.PrimaryKey), Identity: identityOf(entity)}
}

// identityOf returns the user ID that is marked as primary. If several user IDs or none are marked, it returns the
// first by name.
func identityOf(entity *openpgp.Entity) string {
	names := slices.Sorted(maps.Keys(entity.Identities))
	for _, name := range names {
		if self := entity.Identities[name].SelfSignature; self != nil && self.IsPrimaryId != nil && *self.IsPrimaryId {
			return name
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func pgpFingerprint(key *packet.PublicKey) string { return fmt.Sprintf("%X", key.Fingerprint) }

// issuerOf returns the issuer declared in a signature.
func issuerOf(signature *packet.Signature) string {
	if len(signature.IssuerFingerprint) > 0 {
		return fmt.Sprintf("%X", signature.IssuerFingerprint)
	}
	return fmt.Sprintf("%016X", *signature.IssuerKeyId)
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }
