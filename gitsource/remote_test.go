package gitsource

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

const secret = "hunter2-and-more"

// guarded serves the repository to those who show the credentials, over TLS.
func guarded(t *testing.T, r *repository, allowed func(*http.Request) bool) (location string, ca []byte) {
	t.Helper()
	git := r.gitServer()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !allowed(request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			http.Error(w, "no, "+request.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/.git", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func TestCredentials(t *testing.T) {
	r := newRepository(t)
	r.declare("a")
	basic, ca := guarded(t, r, func(request *http.Request) bool {
		user, password, _ := request.BasicAuth()
		return user == "x" && password == secret
	})
	bearer, bearerCA := guarded(t, r, func(request *http.Request) bool {
		return request.Header.Get("Authorization") == "Bearer "+secret
	})
	for _, o := range []Options{
		{Location: basic, Auth: remote.Auth{Username: "x", Password: secret, CABundle: ca}},
		{Location: bearer, Auth: remote.Auth{BearerToken: secret, CABundle: bearerCA}},
	} {
		desired, err := Fetch(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		wantClusters(t, desired, "a")
	}
	for want, o := range map[string]Options{
		"none are given":              {Location: basic, Auth: remote.Auth{CABundle: ca}},
		"refused the credentials":     {Location: basic, Auth: remote.Auth{Username: "y", Password: secret, CABundle: ca}},
		"credentials (bearer token)":  {Location: basic, Auth: remote.Auth{BearerToken: secret, CABundle: ca}},
		"signed by unknown authority": {Location: basic, Auth: remote.Auth{Username: "x", Password: secret}},
	} {
		wantError(t, o, ErrSource, want)
		if _, err := Fetch(t.Context(), o); strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
	wantError(t, Options{Location: basic, Auth: remote.Auth{CABundle: []byte("x")}}, ErrOptions, "no certificate")
}

func TestAuthDoesNotPrintItsSecrets(t *testing.T) {
	a := remote.Auth{Username: "x", Password: secret, BearerToken: secret}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "auth", a)
	for _, printed := range []string{fmt.Sprint(a), fmt.Sprintf("%v %+v %#v %s %q", a, a, a, a, a), fmt.Sprintf("%+v %#v", Options{Auth: a}, Options{Auth: a}), log.String()} {
		if strings.Contains(printed, secret) {
			t.Errorf("%s tells the secret", printed)
		}
	}
}

// A redirect to another server is followed, without the credentials.
func TestCredentialsStayWithTheServer(t *testing.T) {
	r := newRepository(t)
	r.declare("a")
	var told atomic.Bool
	git := r.gitServer()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "" {
			told.Store(true)
		}
		git.ServeHTTP(w, request)
	}))
	t.Cleanup(other.Close)
	for _, scheme := range []string{"http", "https"} {
		start := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			http.Redirect(w, request, other.URL+request.URL.RequestURI(), http.StatusFound)
		}))
		o := Options{}
		if scheme == "https" {
			start.StartTLS()
			o.Auth = remote.Auth{Username: "x", Password: secret,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: start.Certificate().Raw})}
		} else {
			start.Start()
		}
		t.Cleanup(start.Close)
		o.Location = start.URL + "/.git"
		_, err := Fetch(t.Context(), o)
		if downgraded := scheme == "https"; (err != nil) != downgraded {
			t.Errorf("from %s: %v", scheme, err)
		}
		if told.Load() {
			t.Errorf("from %s: the credentials reached the other server", scheme)
		}
	}
}

// Servers that are no git servers, or none that mean well.
func TestServersThatDoNotServe(t *testing.T) {
	advertisement := "001e# service=git-upload-pack\n0000"
	ref := fmt.Sprintf("%s HEAD\x00ofs-delta shallow side-band-64k symref=HEAD:refs/heads/main\n", strings.Repeat("a", 40))
	advertisement += fmt.Sprintf("%04x%s0000", len(ref)+4, ref)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"not found": {http.NotFound, "is not there"},
		"forbidden": {status(http.StatusForbidden), "asks for credentials"},
		"broken":    {status(http.StatusInternalServerError), "500"},
		"busy":      {status(http.StatusTooManyRequests), "429"},
		"page":      {text("<html>hello</html>"), "does not answer as a smart HTTP server"},
		"nothing":   {text(""), "does not answer as a smart HTTP server"},
		"dumb":      {text(strings.Repeat("a", 40) + "\trefs/heads/main\n"), "does not answer as a smart HTTP server"},
		"escapes":   {text("000e\x1b[31mERR x"), "does not answer"},
		"no pack":   {packed(advertisement, "00000008NAK\n"), "fetch http"},
		"bad pack":  {packed(advertisement, "00000008NAK\n0021\x01PACK\x00\x00\x00\x02\xff\xff\xff\xff0123456789abcdef"), "fetch http"},
		"refusal":   {packed(advertisement, "00000008NAK\n0011\x03\x1b[2Jgo away\n"), `\x1b[2Jgo away`},
		"loop": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
		}, "redirect"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.WriteString(w, "001e# service=git-upload-pack\n0000"); err != nil {
				return
			}
			for line := ref; r.Context().Err() == nil; line = strings.Repeat("b", 40) + " refs/heads/" + strings.Repeat("x", 60000) + "\n" {
				if _, err := fmt.Fprintf(w, "%04x%s", len(line)+4, line); err != nil {
					return
				}
			}
		}, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			wantError(t, Options{Location: server.URL + "/x.git"}, ErrSource, c.want)
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "\x1b[31mthe server's words", code) }
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func packed(advertisement, answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := answer
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			body = advertisement
		}
		_, _ = io.WriteString(w, body)
	}
}

// A server that falls silent is waited for until the deadline, not longer.
func TestSilentServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Fetch(ctx, Options{Location: server.URL + "/x.git"})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrSource) {
		t.Errorf("error %v", err)
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for want, o := range map[string]Options{
		"no source is given":               {},
		"holds credentials":                {Location: "https://user:" + secret + "@example.com/x.git"},
		"of example.com holds credentials": {Location: "https://" + secret + "@example.com/x.git"},
		"has a query":                      {Location: "https://example.com/x.git?token=" + secret},
		"not a valid URL":                  {Location: "https://user:" + secret + "@[example.com/x.git"},
		"file:// is not supported":         {Location: "file:///srv/x.git"},
		"the file identity":                {Location: "ssh://git@example.com/x.git"},
		"and known_hosts beside it":        {Location: "git@example.com:x.git"},
		"scheme git is not supported":      {Location: "git://example.com/x.git"},
		"in the clear":                     {Location: "http://example.com/x.git", Auth: remote.Auth{BearerToken: secret}},
		"only one of them":                 {Location: ".", Selector: refs.Selector{Branch: "a", Tag: "b"}},
		"write all 40":                     {Location: ".", Selector: refs.Selector{Commit: "abc"}},
		`"a..b" is no name of a branch`:    {Location: ".", Selector: refs.Selector{Branch: "a..b"}},
		`"../../x" is no name of a tag`:    {Location: ".", Selector: refs.Selector{Tag: "../../x"}},
		`the path "../x" leads out`:        {Location: ".", Options: manifests.Options{Path: "a/../../x"}},
		`the path "/etc" is absolute`:      {Location: ".", Options: manifests.Options{Path: "/etc"}},
	} {
		wantError(t, o, ErrOptions, want)
		if _, err := Fetch(t.Context(), o); strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
}

// What is no UTF-8 would reach the process that fetches as something else, so it is refused before.
func TestOptionsAreText(t *testing.T) {
	const url = "https://git.example.com/x.git"
	for want, o := range map[string]Options{
		"the Location is not UTF-8":                {Location: t.TempDir() + "/caf\xe9"},
		"the CacheDir is not UTF-8":                {Location: url, CacheDir: "/caf\xe9"},
		"the Auth.Password is not UTF-8":           {Location: url, Auth: remote.Auth{Username: "u", Password: secret + "\xe9"}},
		"the Auth.BearerToken is not UTF-8":        {Location: url, Auth: remote.Auth{BearerToken: secret + "\xe9"}},
		"the Options.AllowNamespaces is not UTF-8": {Location: url, Options: manifests.Options{AllowNamespaces: []string{"a", "\xe9"}}},
	} {
		wantError(t, o, ErrOptions, want)
		if _, err := Fetch(t.Context(), o); strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
}
