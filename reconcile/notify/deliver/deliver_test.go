package deliver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/notify"
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567"
	token  = "s3cret-token"
)

// server responds as a test specifies, and records requests.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	heads []http.Header
	posts []string
}

func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, times int)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.RequestURI)
		s.heads = append(s.heads, r.Header)
		if r.Method == http.MethodPost {
			s.posts = append(s.posts, string(body))
		}
		times := len(s.asked)
		s.mu.Unlock()
		answer(w, r, times)
	}))
	t.Cleanup(s.Close)
	return s
}

func address(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestCommitStatusRequestsMatchHosts checks that the requests match the documentation of each git host.
func TestCommitStatusRequestsMatchHosts(t *testing.T) {
	for name, test := range map[string]struct {
		kind, repository, token  string
		get, post, header, value string
		none, has, body          string
	}{
		"github": {"github", "https://github.com/acme/fleet.git", token, "/repos/acme/fleet/commits/C/status?per_page=100", "/repos/acme/fleet/statuses/C", "Authorization", "Bearer " + token,
			`{"state":"pending","statuses":[]}`, `{"state":"success","statuses":[{"id":2,"state":"failure","context":"quorate","description":"why"},{"id":3,"state":"success","context":"ci"}]}`,
			`{"context":"quorate","description":"why","state":"failure"}`},
		"gitea": {"gitea", "ssh://git@git.example.com:2222/acme/fleet.git", token, "/repos/acme/fleet/commits/C/status?limit=50", "/repos/acme/fleet/statuses/C", "Authorization", "token " + token,
			`{"state":"","statuses":null}`, `{"state":"failure","statuses":[{"id":2,"status":"failure","context":"quorate","description":"why"}]}`, `{"context":"quorate","description":"why","state":"failure"}`},
		"gitlab": {"gitlab", "https://gitlab.com/acme/etcd/fleet.git", token, "/projects/acme%2Fetcd%2Ffleet/repository/commits/C/statuses?per_page=100&name=quorate", "/projects/acme%2Fetcd%2Ffleet/statuses/C", "Private-Token", token,
			`[]`, `[{"id":9,"status":"failed","name":"quorate","description":"why"},{"id":8,"status":"pending","name":"quorate","description":"x"}]`, `{"description":"why","name":"quorate","state":"failed"}`},
		"bitbucket cloud": {"bitbucket", "git@bitbucket.org:acme/fleet.git", "me:" + token, "/repositories/acme/fleet/commit/C/statuses/build/quorate", "/repositories/acme/fleet/commit/C/statuses/build", "Authorization", "Basic bWU6czNjcmV0LXRva2Vu",
			``, `{"key":"quorate","state":"FAILED","description":"why"}`, `{"description":"why","key":"quorate","name":"quorate","state":"FAILED","url":"https://bitbucket.org/acme/fleet/commits/C"}`},
		"bitbucket": {"bitbucket", "https://git.example.com/scm/acme/fleet.git", token, "/rest/build-status/1.0/commits/C?limit=100", "/rest/build-status/1.0/commits/C", "Authorization", "Bearer " + token,
			`{"size":0,"values":[]}`, `{"size":1,"values":[{"key":"quorate","state":"FAILED","description":"why"}]}`, `{"description":"why","key":"quorate","name":"quorate","state":"FAILED","url":"API/projects/acme/repos/fleet/commits/C"}`},
	} {
		t.Run(name, func(t *testing.T) {
			has := test.none
			s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				if has == "" && r.Method == http.MethodGet {
					w.WriteHeader(http.StatusNotFound)
				}
				io.WriteString(w, has)
			})
			repository := address(t, strings.Replace(test.repository, "git@bitbucket.org:", "ssh://git@bitbucket.org/", 1))
			h, err := NewHost(test.kind, s.URL, repository)
			if err != nil {
				t.Fatal(err)
			}
			report := func() error {
				return h.Report(t.Context(), test.token, commit, "quorate", notify.Status{State: notify.Failure, Description: "why"})
			}
			if err := report(); err != nil {
				t.Fatal(err)
			}
			as := func(text string) string {
				return strings.ReplaceAll(strings.ReplaceAll(text, "C", commit), "API", s.URL)
			}
			if len(s.asked) != 2 || s.asked[0] != "GET "+strings.ReplaceAll(test.get, "C", commit) || s.asked[1] != "POST "+strings.ReplaceAll(test.post, "C", commit) {
				t.Fatalf("asked %q", s.asked)
			}
			want := strings.ReplaceAll(strings.ReplaceAll(test.body, "commits/C", "commits/"+commit), "API", s.URL)
			if s.posts[0] != want {
				t.Errorf("posted %s, want %s", s.posts[0], want)
			}
			for _, head := range s.heads {
				if head.Get(test.header) != test.value {
					t.Errorf("%s: %s", test.header, head.Get(test.header))
				}
			}
			// A status that already exists is not written again.
			has = as(test.has)
			if err := report(); err != nil || len(s.posts) != 1 {
				t.Errorf("%v: posted %q", err, s.posts)
			}
		})
	}
}

func TestHostAPIAddress(t *testing.T) {
	for _, test := range [][4]string{
		{"github", "", "https://github.com/a/b.git", "https://api.github.com"},
		{"github", "", "ssh://git@ssh.github.com:443/a/b.git", "https://api.github.com"},
		{"github", "", "https://ghe.example.com/a/b", "https://ghe.example.com/api/v3"},
		{"gitlab", "", "https://gitlab.example.com:8443/a/b/c.git", "https://gitlab.example.com:8443/api/v4"},
		{"gitlab", "https://example.com/gitlab/api/v4/", "https://example.com/gitlab/a/b", "https://example.com/gitlab/api/v4"},
		{"gitea", "", "ssh://git@codeberg.org/a/b.git", "https://codeberg.org/api/v1"},
		{"gitea", "", "http://127.0.0.1:3000/a/b.git", "http://127.0.0.1:3000/api/v1"},
		{"bitbucket", "", "https://bitbucket.org/a/b", "https://api.bitbucket.org/2.0"},
		{"bitbucket", "", "https://bb.example.com/scm/a/b.git", "https://bb.example.com"},
	} {
		h, err := NewHost(test[0], test[1], address(t, test[2]))
		if err != nil || h.API() != test[3] || strings.Contains(h.path(), "gitlab") {
			t.Errorf("%q: %s %v", test, h.API(), err)
		}
	}
	for _, test := range [][2]string{{"svn", "https://x/a/b"}, {"github", "https://x/a"}, {"github", "https://x/a/b/c"}, {"gitlab", "https://x/a/../b"}, {"gitea", "https://x/a//b"}} {
		if _, err := NewHost(test[0], "", address(t, test[1])); err == nil {
			t.Errorf("%q is accepted", test)
		}
	}
}

func post(t *testing.T, to string, longest time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	m := notify.NewMessage("m1", time.Now(), "quorate", "", []notify.Event{{Reason: "Converged", Message: "as declared"}})
	return Webhook{URL: to + "/T0/s3cret-path?k=s3cret-path", Format: notify.JSON, Secret: "s3cret-key-of-24-bytes-or-more", Agent: "quorate/test"}.Post(ctx, m)
}

func TestWebhookIsSigned(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request, int) {})
	if err := post(t, s.URL, time.Minute); err != nil {
		t.Fatal(err)
	}
	head := s.heads[0]
	var m notify.Message
	if err := json.Unmarshal([]byte(s.posts[0]), &m); err != nil || m.ID != "m1" || head.Get("Webhook-Id") != "m1" || head.Get("Content-Type") != "application/json" || head.Get("User-Agent") != "quorate/test" {
		t.Errorf("%v %v %s", err, head, s.posts[0])
	}
	seconds, err := time.ParseDuration(head.Get("Webhook-Timestamp") + "s")
	if err != nil {
		t.Fatal(err)
	}
	want, err := notify.Sign("s3cret-key-of-24-bytes-or-more", "m1", time.Unix(int64(seconds.Seconds()), 0), []byte(s.posts[0]))
	if err != nil || head.Get("Webhook-Signature") != want {
		t.Errorf("%v: %s, want %s", err, head.Get("Webhook-Signature"), want)
	}
}

func TestWebhookRetriesTransientErrors(t *testing.T) {
	for _, code := range []int{429, 500, 503} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, times int) {
			if times == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(code)
			}
		})
		began := time.Now()
		if err := post(t, s.URL, time.Minute); err != nil || len(s.asked) != 2 || time.Since(began) < time.Second {
			t.Errorf("%d: %v, asked %d times in %s", code, err, len(s.asked), time.Since(began))
		}
	}
	// If Retry-After is longer than the remaining time, the error is returned immediately.
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(429)
	})
	began := time.Now()
	if err := post(t, s.URL, time.Minute); err == nil || len(s.asked) != 1 || time.Since(began) > 10*time.Second {
		t.Errorf("%v, asked %d times in %s", err, len(s.asked), time.Since(began))
	}
}

// TestErrorsOmitWebPages checks that errors quote a text, but not a web page.
func TestErrorsOmitWebPages(t *testing.T) {
	for body, want := range map[string]string{
		"no such project": ": 404 Not Found: no such project", "<!DOCTYPE html>\n<html>": ": 404 Not Found",
		"\n<HTML><body>": ": 404 Not Found", `{"message": "<html>"}`: `: 404 Not Found: {"message": "<html>"}`,
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, body)
		})
		if err := post(t, s.URL, time.Minute); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestDeliveryErrorsHideSecrets(t *testing.T) {
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request, int) {})
	redirects := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	repeats := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "\x1b[2J no "+path.Base(r.URL.Path)+" "+r.RequestURI+" "+r.URL.Path+" s3cret-key-of-24-bytes-or-more "+strings.Repeat("x", 4<<20))
	})
	gone := serve(t, nil)
	gone.Close()
	for _, s := range []*server{redirects, repeats, gone} {
		err := post(t, s.URL, 2*time.Second)
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 400 || len(s.asked) > 1 {
			t.Errorf("%v, asked %q", err, s.asked)
		}
	}
	if len(elsewhere.asked) != 0 {
		t.Errorf("a redirect was followed: %q", elsewhere.asked)
	}
}

// TestMalformedResponsesHideSecrets checks that errors that quote malformed responses do not reveal secrets.
func TestMalformedResponsesHideSecrets(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 4xx URI KEY\r\n\r\n",
		"URI KEY\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: https://%zz/URI?KEY\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: URI\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: URI KEY\r\n\r\n",
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
			connection, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer connection.Close()
			io.WriteString(connection, strings.NewReplacer("URI", r.RequestURI, "KEY", "s3cret-key-of-24-bytes-or-more").Replace(answer))
		})
		if err := post(t, s.URL, time.Second); err == nil || strings.Contains(err.Error(), "s3cret") || len(err.Error()) > 400 {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// TestErrorsHideCredentialsInURL checks that errors do not reveal the user and password in a webhook URL if the
// response repeats them, as responses of debugging proxies do.
func TestErrorsHideCredentialsInURL(t *testing.T) {
	const user, password = "webhook-user", "s3cret-password"
	encoded := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	for name, answer := range map[string]func(r *http.Request) string{
		"the header": func(r *http.Request) string { return r.Header.Get("Authorization") },
		"the parts": func(r *http.Request) string {
			u, p, _ := r.BasicAuth()
			return "wrong password " + p + " of " + u
		},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "denied: "+answer(r))
		})
		err := post(t, strings.Replace(s.URL, "http://", "http://"+user+":"+password+"@", 1), time.Second)
		if err == nil || !strings.Contains(err.Error(), "denied") || strings.Contains(err.Error(), user) ||
			strings.Contains(err.Error(), password) || strings.Contains(err.Error(), encoded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestErrorsHidePartsOfToken checks that errors reveal neither part of a Bitbucket token of the form USER:TOKEN. The
// server receives both parts, and its response may repeat either of them.
func TestErrorsHidePartsOfToken(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		user, password, _ := r.BasicAuth()
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "denied: the password "+password+" of "+user)
	})
	h, err := NewHost("bitbucket", s.URL, address(t, "https://bitbucket.org/acme/fleet.git"))
	if err != nil {
		t.Fatal(err)
	}
	err = h.Report(t.Context(), "status-user:"+token, commit, "quorate", notify.Status{State: notify.Failure, Description: "why"})
	if err == nil || !strings.Contains(err.Error(), "denied") || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "status-user") {
		t.Error(err)
	}
}

func TestHangingServerTimesOut(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	began := time.Now()
	if err := post(t, s.URL, time.Second); err == nil || time.Since(began) > 8*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}
