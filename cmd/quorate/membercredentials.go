package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/etcd"
)

// readCredentials sets the certificates and the user of the cluster from the files in --credentials. Without https, the
// certificates are not read. verified is set if members' certificates are verified against the hosts in --member.
func (f *memberFlags) readCredentials(c *etcd.Cluster, https, verified bool) error {
	if err := existingDir("credentials", f.credentials); err != nil {
		return err
	}
	if empty(f.credentials) {
		return usageError{fmt.Errorf("--credentials %s: the directory is empty. Does the Secret exist, and does it "+
			"have keys such as ca.crt?", f.credentials)}
	}
	pairs := [][2]string{{"username", "password"}}
	if https {
		pairs = append(pairs, [2]string{"tls.crt", "tls.key"}, [2]string{"ca.crt", "ca.crt"})
	}
	read := map[string][]byte{}
	for _, pair := range pairs {
		if err := f.readPair(pair, read); err != nil {
			return usageError{fmt.Errorf("--credentials %s: %w", f.credentials, err)}
		}
	}
	if user, exists := read["username"]; exists {
		c.Login = &etcd.Login{User: withoutNewline(user), Password: withoutNewline(read["password"])}
		if c.Login.User == "" {
			return usageError{fmt.Errorf("--credentials %s: username is empty", f.credentials)}
		}
	}
	if !https {
		return nil
	}
	_, certificate := read["tls.crt"]
	switch {
	case read["ca.crt"] == nil:
		return usageError{fmt.Errorf("--credentials %s: ca.crt is missing, but --member with https requires it",
			f.credentials)}
	case !certificate && !verified:
		return usageError{fmt.Errorf("--credentials %s: tls.crt and tls.key are missing; you may omit them only with "+
			"--verify-host, or without NAME= in --member", f.credentials)}
	}
	c.TLS = &etcd.TLS{CA: read["ca.crt"], Cert: read["tls.crt"], Key: read["tls.key"], Anonymous: !certificate}
	return nil
}

// empty reports whether a directory contains no files except those that Kubernetes creates in every volume.
func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries,
		func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), "..") })
}

// readPair reads two files in --credentials that must be used together. It returns an error if only one file exists.
func (f *memberFlags) readPair(pair [2]string, into map[string][]byte) error {
	missing, existing := "", ""
	for _, name := range pair {
		content, err := readRegular(filepath.Join(f.credentials, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = name
		case err != nil:
			return err
		default:
			existing, into[name] = name, content
		}
	}
	if missing != "" && existing != "" {
		return fmt.Errorf("%s exists, but %s is missing", existing, missing)
	}
	return nil
}

// readRegular reads a file of limited size, or the file to which a link leads. It does not wait for a writer to a pipe.
func readRegular(name string) ([]byte, error) {
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	return disk.Read(target, maxCredential)
}

// maxCredential is the maximum size of a Secret.
const maxCredential = 1 << 20
