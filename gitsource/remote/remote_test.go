package remote_test

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

	"github.com/go-git/go-git/v5/plumbing"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

const secret = gittest.Secret

// fetch fetches the commit at HEAD.
func fetch(ctx context.Context, r remote.Repository) error {
	if err := r.Check(); err != nil {
		return err
	}
	session, err := remote.Open(ctx, r)
	if err != nil {
		return err
	}
	defer session.Close()
	found, err := session.References().Find(refs.Selector{})
	if err != nil {
		return err
	}
	store, err := session.Fetch(ctx, plumbing.NewHash(found.Commit))
	if err != nil {
		return err
	}
	defer store.Close()
	return store.HasEncodedObject(plumbing.NewHash(found.Commit))
}

func wantFetched(t *testing.T, r remote.Repository) {
	t.Helper()
	if err := fetch(t.Context(), r); err != nil {
		t.Fatalf("%s: %v", r.URL, err)
	}
}

func wantError(t *testing.T, r remote.Repository, want string) {
	t.Helper()
	if err := fetch(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
		t.Errorf("%s: error %v, want one with %q", r.URL, err, want)
	}
}

// guarded serves the repository over TLS, only to clients with the right credentials.
func guarded(t *testing.T, r *gittest.Repository, allowed func(*http.Request) bool) (location string, ca []byte) {
	t.Helper()
	git := r.Handler()
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

func TestHTTPCredentialsAreSent(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	basic, ca := guarded(t, r, func(request *http.Request) bool {
		user, password, _ := request.BasicAuth()
		return user == "x" && password == secret
	})
	bearer, bearerCA := guarded(t, r, func(request *http.Request) bool {
		return request.Header.Get("Authorization") == "Bearer "+secret
	})
	for _, o := range []remote.Repository{
		{URL: basic, Auth: remote.Auth{Username: "x", Password: secret, CABundle: ca}},
		{URL: bearer, Auth: remote.Auth{BearerToken: secret, CABundle: bearerCA}},
	} {
		wantFetched(t, o)
	}
	for want, o := range map[string]remote.Repository{
		"none are configured":            {URL: basic, Auth: remote.Auth{CABundle: ca}},
		"refused the credentials":        {URL: basic, Auth: remote.Auth{Username: "y", Password: secret, CABundle: ca}},
		"credentials (bearer token)":     {URL: basic, Auth: remote.Auth{BearerToken: secret, CABundle: ca}},
		"signed by an unknown authority": {URL: basic, Auth: remote.Auth{Username: "x", Password: secret}},
	} {
		wantError(t, o, want)
		if err := fetch(t.Context(), o); strings.Contains(err.Error(), secret) {
			t.Errorf("the error contains the secret: %v", err)
		}
	}
	wantError(t, remote.Repository{URL: basic, Auth: remote.Auth{CABundle: []byte("x")}}, "does not contain a PEM certificate")
}

func TestAuthDoesNotPrintItsSecrets(t *testing.T) {
	a := remote.Auth{Username: "x", Password: secret, BearerToken: secret}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "auth", a)
	for _, printed := range []string{fmt.Sprint(a), fmt.Sprintf("%v %+v %#v %s %q", a, a, a, a, a), fmt.Sprintf("%+v %#v", remote.Repository{Auth: a}, remote.Repository{Auth: a}), log.String()} {
		if strings.Contains(printed, secret) {
			t.Errorf("%s contains the secret", printed)
		}
	}
}

// TestRedirectDropsCredentials checks that a redirect to another server is followed without the credentials.
func TestRedirectDropsCredentials(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	var told atomic.Bool
	git := r.Handler()
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
		o := remote.Repository{}
		if scheme == "https" {
			start.StartTLS()
			o.Auth = remote.Auth{Username: "x", Password: secret,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: start.Certificate().Raw})}
		} else {
			start.Start()
		}
		t.Cleanup(start.Close)
		o.URL = start.URL + "/.git"
		err := fetch(t.Context(), o)
		if downgraded := scheme == "https"; (err != nil) != downgraded {
			t.Errorf("from %s: %v", scheme, err)
		}
		if told.Load() {
			t.Errorf("from %s: the credentials reached the other server", scheme)
		}
	}
}

// TestInvalidServerResponsesAreReported checks the errors for servers that are hostile or are not git servers.
func TestInvalidServerResponsesAreReported(t *testing.T) {
	advertisement := "001e# service=git-upload-pack\n0000"
	ref := fmt.Sprintf("%s HEAD\x00ofs-delta shallow side-band-64k symref=HEAD:refs/heads/main\n", strings.Repeat("a", 40))
	advertisement += fmt.Sprintf("%04x%s0000", len(ref)+4, ref)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"not found": {http.NotFound, "does not exist"},
		"forbidden": {status(http.StatusForbidden), "requires credentials"},
		"broken":    {status(http.StatusInternalServerError), "500"},
		"busy":      {status(http.StatusTooManyRequests), "429"},
		"page":      {text("<html>hello</html>"), "does not respond like a smart HTTP server"},
		"nothing":   {text(""), "does not respond like a smart HTTP server"},
		"dumb":      {text(strings.Repeat("a", 40) + "\trefs/heads/main\n"), "does not respond like a smart HTTP server"},
		"escapes":   {text("000e\x1b[31mERR x"), "does not respond"},
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
			wantError(t, remote.Repository{URL: server.URL + "/x.git"}, c.want)
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

// TestSilentServerTimesOut checks that fetching from a server that stops responding ends at the deadline.
func TestSilentServerTimesOut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := fetch(ctx, remote.Repository{URL: server.URL + "/x.git"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestFetchIsShallow checks that one revision is fetched without its history.
func TestFetchIsShallow(t *testing.T) {
	r, commits := gittest.Revisions(t)
	r.Git("tag", "--delete", "light") // only annotated tags remain
	session, err := remote.Open(t.Context(), remote.Repository{URL: r.Serve()})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for name, want := range map[string]int{"main": 3, "tagged": 5} { // the commit, its tree and its file, and any tags
		store, err := session.Fetch(t.Context(), plumbing.NewHash(commits[name]))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if store.Len() != want {
			t.Errorf("%d objects were fetched of %s, want %d", store.Len(), name, want)
		}
	}
}
