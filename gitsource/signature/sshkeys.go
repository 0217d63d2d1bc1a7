package signature

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"quorate.dev/quorate/internal/printable"
)

// parseSSH reads public keys, one per line, as ssh-keygen writes them. The comment identifies the signer.
func parseSSH(content []byte) ([]sshKey, error) {
	return eachLine(content, func(line string) (sshKey, error) {
		key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return sshKey{}, errNoKey
		}
		if len(options) > 0 {
			return sshKey{}, errors.New("options are only allowed in an allowed_signers file")
		}
		return sshKey{key: key, identity: comment}, checkSSH(key)
	})
}

// parseAllowedSigners reads the file used by ssh-keygen -Y verify: principals, options and a public key on each line.
func parseAllowedSigners(content []byte) ([]sshKey, error) {
	return eachLine(content, func(line string) (sshKey, error) {
		principals, rest, err := cutPrincipals(line)
		if err != nil {
			return sshKey{}, err
		}
		key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(rest))
		if err != nil {
			return sshKey{}, errNoKey
		}
		parsed := sshKey{key: key, identity: principals}
		for _, option := range options {
			if err := parsed.set(option); err != nil {
				return sshKey{}, err
			}
		}
		return parsed, checkSSH(key)
	})
}

var errNoKey = errors.New("it is not an SSH public key, or has an unknown type")

// eachLine parses each line, skipping empty lines and comments.
func eachLine(content []byte, parse func(line string) (sshKey, error)) (keys []sshKey, err error) {
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("it does not contain an SSH key")
	}
	return keys, nil
}

// cutPrincipals splits off the first field of a line, which may be quoted.
func cutPrincipals(line string) (principals, rest string, err error) {
	if inQuotes, ok := strings.CutPrefix(line, `"`); ok {
		principals, rest, ok = strings.Cut(inQuotes, `"`)
		if !ok || principals == "" || !strings.HasPrefix(rest, " ") {
			return "", "", errors.New("its principals are not terminated")
		}
		return principals, strings.TrimSpace(rest), nil
	}
	field := strings.Fields(line)[0]
	return field, strings.TrimSpace(line[len(field):]), nil
}

// set applies an option of an allowed signer.
func (k *sshKey) set(option string) (err error) {
	name, value, hasValue := strings.Cut(option, "=")
	value, isOpen := strings.CutPrefix(value, `"`)
	value, isClosed := strings.CutSuffix(value, `"`)
	if hasValue && (!isOpen || !isClosed) {
		return fmt.Errorf("the value of %s is not in quotes", printable.Text(name))
	}
	switch strings.ToLower(name) {
	case "cert-authority":
		return errors.New("cert-authority is not supported: list the keys themselves")
	case "namespaces":
		return k.setNamespaces(value)
	case "valid-after":
		k.from, err = parseTime(value)
	case "valid-before":
		k.until, err = parseTime(value)
	default:
		return fmt.Errorf("unknown option %q", name)
	}
	return err
}

func (k *sshKey) setNamespaces(value string) error {
	if value == "" || strings.ContainsAny(value, `!\[`) {
		return fmt.Errorf("the namespaces %q: expected names separated by commas; * and ? are wildcards", value)
	}
	k.namespaces = strings.Split(value, ",")
	return nil
}

// parseTime parses ssh-keygen's times, YYYYMMDD[HHMM[SS]][Z]. All are read as UTC, because local time differs between
// machines.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if t, err := time.Parse(layout, strings.TrimSuffix(text, "Z")); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write YYYYMMDD or YYYYMMDDHHMM, in UTC", text)
}

func checkSSH(key ssh.PublicKey) error {
	if !slices.Contains(sshTypes, key.Type()) {
		return fmt.Errorf("keys of type %s are not supported", key.Type())
	}
	public, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return nil
	}
	if key, ok := public.CryptoPublicKey().(*rsa.PublicKey); ok && key.N.BitLen() < minRSABits {
		return fmt.Errorf("RSA with %d bits is too weak; the minimum is %d", key.N.BitLen(), minRSABits)
	}
	return nil
}
