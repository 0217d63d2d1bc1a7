package gitsource

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

// Options say what to read and how.
type Options struct {
	// Location is the URL of a smart HTTP(S) or ssh server, user@host:path for the latter,
	// the path of a local repository, bare or not, or the path of a local directory that is
	// no repository. Of a local repository, what is committed is read, not the worktree.
	Location string
	refs.Selector
	// Auth is for repositories that are not public.
	Auth remote.Auth
	// Proxy is the URL of the proxy to reach a server through, instead of those that the
	// environment names.
	Proxy string
	// Transfer bounds what a server may send.
	Transfer remote.Limits
	// Timeout of reading the source once, from connecting to the last declaration; FetchTimeout if
	// it is zero.
	Timeout time.Duration
	// CacheDir keeps the objects of what was read last from a server, for other processes and later
	// ones. Nothing is kept if it is empty.
	CacheDir string
	// Memory, in bytes, is what the process that fetches may take, besides what the program takes
	// itself; if it is zero, it is far over what the limits let it take.
	Memory int64
	// Verify says what must be signed, and by whom.
	Verify Verification
	manifests.Options
}

// Check returns what is wrong with the options themselves, before anything is read. It matches
// ErrOptions.
func (o Options) Check() error {
	_, err := o.normalized()
	return err
}

// isRemote says whether a location is one of a server. What is there as a file or a directory is
// local, though its name has a colon in it.
func isRemote(location string) bool {
	if strings.Contains(location, "://") {
		return true
	}
	_, err := os.Stat(location)
	return err != nil && remote.IsAddress(location)
}

// repository is the one on a server, and has no URL if it is local.
func (o Options) repository() remote.Repository {
	limits := o.Transfer
	limits.Pack.FileBytes = o.fileBytes()
	r := remote.Repository{Auth: o.Auth, Proxy: o.Proxy, Limits: limits, TempDir: o.CacheDir}
	if isRemote(o.Location) {
		r.URL = o.Location
	}
	return r
}

func (o Options) fileBytes() int64 {
	return cmp.Or(o.Limits.FileBytes, manifests.DefaultLimits.FileBytes)
}

// normalized checks the options as far as they can be checked without the source, and
// spells them in one way.
func (o Options) normalized() (Options, error) {
	if o.Location == "" {
		return o, optionsErrorf("no source is given: " +
			"the URL of a repository, or the path of a repository or of a directory")
	}
	if field := notText(reflect.ValueOf(o), "Options"); field != "" {
		return o, optionsErrorf("the %s is not UTF-8; write it in UTF-8, or use another",
			strings.TrimPrefix(field, "Options."))
	}
	var err error
	if o.Selector, err = o.Selector.Normalized(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Verify, err = o.Verify.normalized(o.Selector); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err := o.repository().Check(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if path.IsAbs(o.Path) {
		return o, optionsErrorf("the path %q is absolute; it is relative to the root of the source", o.Path)
	}
	if o.Path = path.Clean(o.Path); !fs.ValidPath(o.Path) {
		return o, optionsErrorf("the path %q leads out of the source", o.Path)
	}
	return o, nil
}

// notText is the name of a field that holds text which is not UTF-8, in v or below it; empty if
// there is none. Such text would arrive as other text at the process that fetches.
func notText(v reflect.Value, name string) string {
	switch v.Kind() { //nolint:exhaustive // others hold no text
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return name
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if found := notText(value, name+"."+field.Name); field.IsExported() && found != "" {
				return found
			}
		}
	case reflect.Slice, reflect.Map:
		return notTextAmong(v, name)
	}
	return ""
}

// notTextAmong is that for a list of texts, or a map.
func notTextAmong(v reflect.Value, name string) string {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return "" // bytes arrive as they are
	}
	for key, value := range v.Seq2() {
		if found := cmp.Or(notText(key, name), notText(value, name)); found != "" {
			return found
		}
	}
	return ""
}
