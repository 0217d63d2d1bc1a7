package sources

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/credentials"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/signature"
)

// Source specifies where and how declarations are read.
type Source struct {
	// Location is what gitsource.Options.Location accepts, such as a URL.
	Location string
	// Where is the position of the source in a configuration file, for errors; empty if it is specified in a flag.
	Where    string
	Selector refs.Selector
	// Path is a directory in the repository; empty means its root.
	Path string
	// Credentials is the directory that contains the credentials. If empty, credentials from the environment are used.
	Credentials string
	// CAOnly trusts only the CAs in the credentials.
	CAOnly bool
	// Proxy is the URL of the proxy for the repository. If empty, the proxy from the environment is used.
	Proxy string
	// Verify specifies what must be signed. VerifyKeys is the path of the allowed signers' public keys.
	Verify     string
	VerifyKeys string
	// Namespace is the namespace of declarations that do not specify one.
	Namespace string
	// AllowNamespaces limits the namespaces of the declared clusters; empty means all namespaces.
	AllowNamespaces []string
	// Policy limits what the declared clusters may request.
	Policy           policy.Policy
	IgnoreOtherKinds bool
	// CacheDir is the directory in which the last read is cached; empty means no cache.
	CacheDir string
	// AllowNonFastForward accepts a revision that does not descend from the last applied revision.
	AllowNonFastForward bool
	// Timeout is the maximum time for reading the source.
	Timeout time.Duration
	Limits  Limits
	// FetchBytes is the memory limit of the process that fetches the source; 0 means unlimited.
	FetchBytes int64
}

// Limits limits the resources that a source may use. The defaults are far above the needs of a normal source.
type Limits struct {
	Transfer remote.Limits
	Files    manifests.Limits
}

// DefaultLimits are the limits if enough memory is available.
var DefaultLimits = Limits{remote.DefaultLimits, manifests.DefaultLimits}

// String returns the name of the source in reports.
func (s Source) String() string {
	if s.Path == "" {
		return s.Location
	}
	return s.Location + ",path=" + s.Path
}

// identity returns the name of the source in the status of its clusters. It does not depend on the working directory.
func (s Source) identity() string {
	if !remote.IsAddress(s.Location) {
		if path, err := filepath.Abs(s.Location); err == nil {
			s.Location = path
		}
	}
	if s.Path = path.Clean(s.Path); s.Path == "." {
		s.Path = ""
	}
	return s.String()
}

// Selecting lists the mutually exclusive settings that select a revision.
var Selecting = []string{"branch", "tag", "semver", "ref", "commit"}

// selected returns the setting that selects the revision, or "" if HEAD is used.
func (s Source) selected() string {
	for i, value := range []string{s.Selector.Branch, s.Selector.Tag, s.Selector.SemVer, s.Selector.Name,
		s.Selector.Commit} {
		if value != "" {
			return "," + Selecting[i] + "=" + value
		}
	}
	return ""
}

// Options returns the options for reading the source, including credentials but not the allowed signers' keys.
func (s Source) Options() (gitsource.Options, error) {
	o := gitsource.Options{
		Location: s.Location,
		Selector: s.Selector,
		Auth:     credentials.FromEnvironment(os.Getenv),
		Proxy:    s.Proxy,
		Verify:   gitsource.Verification{Mode: signature.Mode(s.Verify)},
		Transfer: s.Limits.Transfer,
		Timeout:  s.Timeout,
		CacheDir: s.CacheDir,
		Memory:   s.FetchBytes,
		Options: manifests.Options{
			Path: s.Path, Namespace: s.Namespace, AllowNamespaces: s.AllowNamespaces, Policy: s.Policy,
			IgnoreOtherKinds: s.IgnoreOtherKinds, Limits: s.Limits.Files,
		},
	}
	var err error
	if s.Credentials != "" {
		o.Auth, err = credentials.Read(s.Credentials)
	}
	o.Auth.CAOnly = s.CAOnly
	return o, err
}

// Check checks the settings as far as possible without reading the source or the allowed signers' keys. Errors in
// settings match gitsource.ErrOptions; other errors explain why the credentials cannot be read.
func (s Source) Check() error {
	options, err := s.Options()
	if err != nil {
		return err
	}
	if err := s.checkVerify(); err != nil {
		return err
	}
	return options.Check()
}

func (s Source) checkVerify() error {
	if s.Verify != "" && s.VerifyKeys == "" {
		return settingError{fmt.Errorf("verify %s requires verifyKeys, the public keys of the allowed signers",
			s.Verify)}
	}
	return nil
}

// keys reads the allowed signers' keys. It reads them every time, so that removed keys are no longer trusted.
func (s Source) keys() (signature.Keys, error) {
	if s.VerifyKeys == "" {
		return signature.Keys{}, s.checkVerify()
	}
	keys, err := signature.ReadKeys(s.VerifyKeys)
	if err != nil {
		return signature.Keys{}, settingError{fmt.Errorf("--verify-keys %s: %w", s.VerifyKeys, err)}
	}
	return keys, nil
}

// fetch waits for a turn and reads the source.
func (s Source) fetch(ctx context.Context, slots *Slots, reader *gitsource.Reader) (gitsource.Desired, error) {
	options, err := s.Options()
	if err != nil {
		return gitsource.Desired{}, err
	}
	if options.Verify.Keys, err = s.keys(); err != nil {
		return gitsource.Desired{}, err
	}
	var desired gitsource.Desired
	err = slots.Read(ctx, s.Location, func(ctx context.Context) (err error) {
		desired, err = reader.Fetch(ctx, options)
		return err
	})
	return desired, err
}

// settingError is an error about a setting. It matches gitsource.ErrOptions.
type settingError struct{ error }

// Is reports whether target is gitsource.ErrOptions.
func (settingError) Is(target error) bool { return target == gitsource.ErrOptions }

// Unwrap returns the error itself.
func (e settingError) Unwrap() error { return e.error }
