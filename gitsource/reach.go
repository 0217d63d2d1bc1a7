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

// resolving are the files that say where hosts are.
var resolving = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services"}

// reachFor is what the process that fetches needs: the files of a local source, or the network,
// what tells hosts apart, and where it keeps what was sent. The environment is what is left of this
// process's. What was made for it is removed by the function.
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
	dir, err := os.MkdirTemp("", "quorate-*") // the temporary directory itself may hold what is others'
	if err != nil {
		// What is sent is kept in memory, or the error is said when it is too much for that.
		return r, environment, nothing
	}
	r.Write = []string{dir}
	environment = slices.DeleteFunc(environment, func(variable string) bool { return nameOf(variable) == "TMPDIR" })
	return r, append(environment, "TMPDIR="+dir), func() error { return removeAll(dir) }
}

func nothing() error { return nil }

// removeAll removes a directory, also if what is in it may not be read: whoever has taken over the
// process that wrote there may have made it so.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // RemoveAll says what is wrong
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// passed are the variables of the environment that the process has: proxies, the authorities of the
// system, and settings of Go itself.
var passed = []string{
	"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"TMPDIR", "TZ", "GODEBUG",
}

func nameOf(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}

// partsOf returns the directories of a local source: its own, and those that git keeps elsewhere for it.
func partsOf(location string) []string {
	layout, err := local.Find(location)
	if err != nil {
		return []string{location} // the process that fetches reports why
	}
	return append([]string{location}, layout.Dirs()...)
}
