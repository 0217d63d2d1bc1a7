package gitsource

import (
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

func TestInvalidOptionsAreRejected(t *testing.T) {
	for want, o := range map[string]Options{
		"no source specified":                        {},
		"contains credentials":                       {Location: "https://user:" + secret + "@example.com/x.git"},
		"of example.com contains credentials":        {Location: "https://" + secret + "@example.com/x.git"},
		"has a query":                                {Location: "https://example.com/x.git?token=" + secret},
		"not a valid URL":                            {Location: "https://user:" + secret + "@[example.com/x.git"},
		"file:// is not supported":                   {Location: "file:///srv/x.git"},
		"ssh requires a private key (file identity)": {Location: "ssh://git@example.com/x.git"},
		"and known_hosts, both in the directory":     {Location: "git@example.com:x.git"},
		"scheme git is not supported":                {Location: "git://example.com/x.git"},
		"unencrypted":                                {Location: "http://example.com/x.git", Auth: remote.Auth{BearerToken: secret}},
		"specify only one":                           {Location: ".", Selector: refs.Selector{Branch: "a", Tag: "b"}},
		"write all 40":                               {Location: ".", Selector: refs.Selector{Commit: "abc"}},
		`"a..b" is not a branch name`:                {Location: ".", Selector: refs.Selector{Branch: "a..b"}},
		`"../../x" is not a tag name`:                {Location: ".", Selector: refs.Selector{Tag: "../../x"}},
		`the path "../x" is outside of the source`:   {Location: ".", Options: manifests.Options{Path: "a/../../x"}},
		`the path "/etc" is absolute`:                {Location: ".", Options: manifests.Options{Path: "/etc"}},
	} {
		wantError(t, o, ErrOptions, want)
		if _, err := Fetch(t.Context(), o); strings.Contains(err.Error(), secret) {
			t.Errorf("the error contains the secret: %v", err)
		}
	}
}

// TestOptionsMustBeUTF8 checks that text that is not valid UTF-8 is rejected, because JSON encoding would change it on
// the way to the fetcher.
func TestOptionsMustBeUTF8(t *testing.T) {
	const url = "https://git.example.com/x.git"
	for want, o := range map[string]Options{
		"the Location is not valid UTF-8":                {Location: t.TempDir() + "/caf\xe9"},
		"the CacheDir is not valid UTF-8":                {Location: url, CacheDir: "/caf\xe9"},
		"the Auth.Password is not valid UTF-8":           {Location: url, Auth: remote.Auth{Username: "u", Password: secret + "\xe9"}},
		"the Auth.BearerToken is not valid UTF-8":        {Location: url, Auth: remote.Auth{BearerToken: secret + "\xe9"}},
		"the Options.AllowNamespaces is not valid UTF-8": {Location: url, Options: manifests.Options{AllowNamespaces: []string{"a", "\xe9"}}},
	} {
		wantError(t, o, ErrOptions, want)
		if _, err := Fetch(t.Context(), o); strings.Contains(err.Error(), secret) {
			t.Errorf("the error contains a secret: %v", err)
		}
	}
}
