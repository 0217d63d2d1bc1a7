package main

import "errors"

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
