package signature

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// minRSABits is the minimum size of an RSA key, for PGP and SSH.
const minRSABits = 2048

// parsePGP reads armored public keys. Only empty lines may separate them.
func parsePGP(content []byte) (openpgp.EntityList, error) {
	blocks, err := splitArmor(content)
	if err != nil {
		return nil, err
	}
	var all openpgp.EntityList
	for _, text := range blocks {
		block, err := armor.Decode(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		packets := packet.NewReader(block.Body)
		for {
			entity, err := openpgp.ReadEntity(packets)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if err := checkEntity(entity); err != nil {
				return nil, fmt.Errorf("the key %s: %w", pgpSigner(entity), err)
			}
			all = append(all, entity)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("it does not contain a PGP key")
	}
	return all, nil
}

// splitArmor splits a file into its armored blocks.
func splitArmor(content []byte) (blocks [][]byte, err error) {
	const start, end = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
	var open []byte
	for line := range bytes.Lines(content) {
		text := string(bytes.TrimSpace(line))
		switch {
		case text == start && open == nil, open != nil && text != start:
			open = append(open, line...)
		case text != "":
			return nil, errors.New("it contains something other than armored public keys; " +
				"expected the output of gpg --armor --export")
		}
		if text == end && open != nil {
			blocks, open = append(blocks, open), nil
		}
	}
	if open != nil {
		return nil, errors.New("its last armored key is truncated")
	}
	return blocks, nil
}

// checkEntity rejects weak keys and keys that the library cannot verify signatures with.
func checkEntity(entity *openpgp.Entity) error {
	self, _ := entity.PrimarySelfSignature()
	if self == nil {
		return errors.New("it has no self-signature")
	}
	if err := checkStrength(entity.PrimaryKey); err != nil {
		return err
	}
	canSign := self.FlagsValid && self.FlagSign
	for _, subkey := range entity.Subkeys {
		if !subkey.Sig.FlagsValid || !subkey.Sig.FlagSign {
			continue
		}
		canSign = true
		if err := checkStrength(subkey.PublicKey); err != nil {
			return err
		}
	}
	if !canSign {
		return errors.New("neither the key nor any of its subkeys can sign")
	}
	return nil
}

func checkStrength(key *packet.PublicKey) error {
	switch public := key.PublicKey.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < minRSABits {
			return fmt.Errorf("RSA with %d bits is too weak; the minimum is %d", bits, minRSABits)
		}
	default:
		if key.PubKeyAlgo == packet.PubKeyAlgoDSA || key.PubKeyAlgo == packet.PubKeyAlgoElGamal {
			return errors.New("DSA is too weak; create an Ed25519 or RSA key")
		}
	}
	return nil
}

// joinPGP adds keys and rejects duplicates, because one copy of a key may include a revocation that the other copy
// lacks.
func joinPGP(all, more openpgp.EntityList) (openpgp.EntityList, error) {
	for _, entity := range more {
		same := func(other *openpgp.Entity) bool {
			return bytes.Equal(other.PrimaryKey.Fingerprint, entity.PrimaryKey.Fingerprint)
		}
		if slices.ContainsFunc(all, same) {
			return all, fmt.Errorf("the key %s is listed twice; keep only the current copy", pgpSigner(entity))
		}
		all = append(all, entity)
	}
	return all, nil
}
