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

// Options specify what to read and how.
type Options struct {
	// Location is the URL of a smart HTTP(S) or ssh server (for ssh, also user@host:path), the path of a local
	// repository, bare or not, or the path of a local directory that is not a repository. In a local repository, the
	// committed files are read, not the worktree.
	Location string
	refs.Selector
	// Auth holds the credentials for private repositories.
	Auth remote.Auth
	// Proxy is the URL of the proxy to use instead of the proxies set in the environment.
	Proxy string
	// Transfer limits what a server may send.
	Transfer remote.Limits
	// Timeout limits one read of the source, from connecting to the last declaration. The default is FetchTimeout.
	Timeout time.Duration
	// CacheDir stores the objects last read from a server, for other processes and later runs. If it is empty, nothing
	// is stored.
	CacheDir string
	// Memory is the number of bytes that the fetcher may use in addition to the program itself. The default is well
	// above what a source within its limits can use.
	Memory int64
	// Verify specifies what must be signed, and with which keys.
	Verify Verification
	manifests.Options
}

// Check validates the options before anything is read. Its error matches ErrOptions.
func (o Options) Check() error {
	_, err := o.normalized()
	return err
}

// isRemote reports whether a location is on a server. An existing file or directory is local even if its name contains
// a colon.
func isRemote(location string) bool {
	if strings.Contains(location, "://") {
		return true
	}
	_, err := os.Stat(location)
	return err != nil && remote.IsAddress(location)
}

// repository returns the remote repository of the options. Its URL is empty if the location is local.
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

// normalized validates the options as far as possible without the source, and returns them in canonical form.
func (o Options) normalized() (Options, error) {
	if o.Location == "" {
		return o, optionsErrorf("no source specified: set " +
			"the URL of a repository, or the path of a repository or of a directory")
	}
	if field := notText(reflect.ValueOf(o), "Options"); field != "" {
		return o, optionsErrorf("the %s is not valid UTF-8",
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
		return o, optionsErrorf("the path %q is absolute; it must be relative to the root of the source", o.Path)
	}
	if o.Path = path.Clean(o.Path); !fs.ValidPath(o.Path) {
		return o, optionsErrorf("the path %q is outside of the source", o.Path)
	}
	return o, nil
}

// notText returns the name of a field, either v or a field within it, whose text is not valid UTF-8, or "". JSON
// encoding would change such text on the way to the fetcher.
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

// notTextAmong does the same as notText for the elements of a slice or map.
func notTextAmong(v reflect.Value, name string) string {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return "" // bytes are sent unchanged
	}
	for key, value := range v.Seq2() {
		if found := cmp.Or(notText(key, name), notText(value, name)); found != "" {
			return found
		}
	}
	return ""
}
