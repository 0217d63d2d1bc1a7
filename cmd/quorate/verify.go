package main

import (
	"errors"
	"fmt"

	"quorate.dev/quorate/gitsource/signature"
)

// keysPath is the value of --verify-keys. It rejects an empty value, so that an unset variable does not silently
// disable verification.
type keysPath string

func (p *keysPath) String() string { return string(*p) }
func (p *keysPath) Type() string   { return "string" }

func (p *keysPath) Set(path string) error {
	if path == "" {
		return errors.New("expected the path of a directory or a file: without keys, signatures are not verified")
	}
	*p = keysPath(path)
	return nil
}

// checkVerify checks the signature settings as far as possible without reading keys.
func (s source) checkVerify() error {
	if s.verify != "" && s.verifyKeys == "" {
		return usageError{fmt.Errorf("--verify %s: --verify-keys is required: the public keys of allowed signers",
			s.verify)}
	}
	return nil
}

// keys reads the keys of the allowed signers. It reads them every time, so that removed keys are no longer trusted.
func (s source) keys() (signature.Keys, error) {
	if s.verifyKeys == "" {
		return signature.Keys{}, s.checkVerify()
	}
	keys, err := signature.ReadKeys(string(s.verifyKeys))
	if err != nil {
		return signature.Keys{}, usageError{fmt.Errorf("--verify-keys %s: %w", s.verifyKeys, err)}
	}
	return keys, nil
}
