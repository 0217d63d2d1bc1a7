package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

// maxKeysBytes is the maximum size of a key file, the same as the size limit of a Secret.
const maxKeysBytes = 1 << 20

// ReadKeys reads the public keys in a file, or in all files of a directory, such as a mounted Secret. The name of a
// file determines its format: *.asc for armored PGP keys, *.sshpub or *.pub for SSH keys, and allowed_signers or
// *.allowed_signers for ssh-keygen's format of that name. A file in an unknown format is an error, because its keys
// would be ignored without notice. The error lists all problems.
func ReadKeys(path string) (Keys, error) {
	files, err := filesIn(path)
	if err != nil {
		return Keys{}, err
	}
	var keys Keys
	var problems []string
	for _, file := range files {
		if err := keys.add(file); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s", filepath.Base(file), err))
		}
	}
	if len(problems) > 0 {
		return Keys{}, errors.New(printable.Text(strings.Join(problems, "; ")))
	}
	if keys.Empty() {
		return Keys{}, errors.New("no keys found")
	}
	return keys, nil
}

// filesIn lists a directory without ..data and its target, which Kubernetes uses to update a Secret atomically.
func filesIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "..") {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

// add adds the keys in a file.
func (k *Keys) add(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return errors.New("it cannot be read")
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeysBytes {
		return fmt.Errorf("it is not a file, or is larger than %d KiB", maxKeysBytes>>10)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return errors.New("it cannot be read")
	}
	if bytes.Contains(content, []byte("PRIVATE KEY")) {
		return errors.New("it contains a private key; verification only needs the public key")
	}
	return k.parse(filepath.Base(file), content)
}

// keyFile is a file with keys.
type keyFile struct {
	Name    string
	Content []byte
}

// MarshalJSON encodes the files from which the keys were read.
func (k Keys) MarshalJSON() ([]byte, error) { return json.Marshal(k.files) }

// UnmarshalJSON decodes the files and reads their keys.
func (k *Keys) UnmarshalJSON(text []byte) error {
	var files []keyFile
	if err := json.Unmarshal(text, &files); err != nil {
		return err
	}
	*k = Keys{}
	for _, file := range files {
		if err := k.parse(file.Name, file.Content); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return nil
}

// parse adds the keys in a file called name.
func (k *Keys) parse(name string, content []byte) error {
	k.files = append(k.files, keyFile{name, content})
	switch extension := filepath.Ext(name); {
	case extension == ".asc":
		keys, err := parsePGP(content)
		if err == nil {
			k.pgp, err = joinPGP(k.pgp, keys)
		}
		return err
	case extension == ".sshpub", extension == ".pub":
		keys, err := parseSSH(content)
		k.ssh = append(k.ssh, keys...)
		return err
	case name == "allowed_signers", extension == ".allowed_signers":
		keys, err := parseAllowedSigners(content)
		k.ssh = append(k.ssh, keys...)
		return err
	}
	return errors.New("its file name does not indicate its format; " +
		"expected *.asc (PGP), *.sshpub or *.pub (SSH), allowed_signers or *.allowed_signers")
}
