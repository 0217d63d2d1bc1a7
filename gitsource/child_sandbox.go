package gitsource

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"quorate.dev/quorate/gitsource/local"
	"quorate.dev/quorate/gitsource/manifests/confined"
)

// resolving lists the files used for host name resolution.
var resolving = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services"}

// reachFor returns what the fetcher may access: the files of a local source, or the network, the files that identify
// hosts and the directory that stores received data. It also returns the fetcher's environment, a filtered copy of
// environment, and a function that removes the temporary directory, if one was created.
func reachFor(o Options, environment []string) (confined.Reach, []string, func() error) {
	environment = slices.DeleteFunc(slices.Clone(environment),
		func(variable string) bool { return !slices.Contains(passed, nameOf(variable)) })
	if !isRemote(o.Location) {
		return confined.Reach{Read: partsOf(o.Location)}, environment, nothing
	}
	r := confined.Reach{Network: true, Read: slices.Clone(resolving)}
	if o.Auth.KnownHosts != "" {
		r.Read = append(r.Read, o.Auth.KnownHosts)
	}
	if o.CacheDir != "" {
		r.Write = []string{o.CacheDir}
		return r, environment, nothing
	}
	dir, err := os.MkdirTemp("", "quorate-*") // os.TempDir itself may contain other users' files
	if err != nil {
		// Received data is kept in memory instead. Reading fails if the data is too large for memory.
		return r, environment, nothing
	}
	r.Write = []string{dir}
	environment = slices.DeleteFunc(environment, func(variable string) bool { return nameOf(variable) == "TMPDIR" })
	return r, append(environment, "TMPDIR="+dir), func() error { return removeAll(dir) }
}

func nothing() error { return nil }

// removeAll removes a directory even if a compromised fetcher has made its content unreadable.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // the final RemoveAll reports errors
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// passed lists the environment variables that the fetcher receives: proxies, the system's certificate authorities, and
// settings of Go itself.
var passed = []string{
	"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"TMPDIR", "TZ", "GODEBUG",
}

func nameOf(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}

// partsOf returns the directories of a local source: its own, and other directories in which git stores parts of the
// repository.
func partsOf(location string) []string {
	layout, err := local.Find(location)
	if err != nil {
		return append([]string{location}, layout.Around...) // the fetcher reports why
	}
	return append([]string{location}, layout.Paths()...)
}
