package remote_test

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/remote"
)

const (
	proxySecret = "PROXY+s3cret/and\"more"
	token       = "SECRET-token/and\"more+xyz"
)

// echoes holds responses that repeat the request's credentials in the parts that errors quote.
var echoes = map[string]func(credentials string) string{
	"status line":          func(c string) string { return "HTTP/1.1 " + c + "\r\n\r\n" },
	"status code":          func(c string) string { return "HTTP/1.1 4xx " + c + "\r\n\r\n" },
	"no status line":       func(c string) string { return c + "\r\n\r\n" },
	"header without colon": func(c string) string { return "HTTP/1.1 200 OK\r\n" + c + "\r\n\r\n" },
	"redirect": func(c string) string {
		return "HTTP/1.1 302 Found\r\nLocation: https://%zz/" + c + "\r\nContent-Length: 0\r\n\r\n"
	},
	"length":   func(c string) string { return "HTTP/1.1 200 OK\r\nContent-Length: " + c + "\r\n\r\n" },
	"encoding": func(c string) string { return "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + c + "\r\n\r\n" },
	"ERR":      func(c string) string { return advertised(pkt("ERR denied: " + c)) },
	"long ERR": func(c string) string { return advertised(pkt("ERR " + strings.Repeat("x", 460) + c)) },
	"quoted ERR": func(c string) string {
		return advertised(pkt(fmt.Sprintf("ERR \x1b %q", c)))
	},
}

func pkt(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }

// advertised returns a response of a smart HTTP server.
func advertised(lines string) string {
	body := "001e# service=git-upload-pack\n0000" + lines
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// serveEcho answers every request with the response that answer returns for it, and returns the server's address.
func serveEcho(t *testing.T, answer func(*http.Request) string) (address string) {
	t.Helper()
	l := gittest.Listen(t)
	go func() {
		for {
			connection, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				answerAll(connection, answer)
			}()
		}
	}()
	return l.Addr().String()
}

func answerAll(connection net.Conn, answer func(*http.Request) string) {
	r := bufio.NewReader(connection)
	for {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		if _, err := io.WriteString(connection, answer(request)); err != nil {
			return
		}
	}
}

// echo returns a function whose responses repeat a request header.
func echo(answer func(string) string, header string) func(*http.Request) string {
	return func(request *http.Request) string { return answer(request.Header.Get(header)) }
}

// wantHidden requires that fetching fails, and that the error does not contain a secret or half of a secret.
func wantHidden(t *testing.T, r remote.Repository, secrets ...string) error {
	t.Helper()
	err := fetch(t.Context(), r)
	if err == nil {
		t.Fatal("fetched")
	}
	for _, s := range secrets {
		quoted := fmt.Sprintf("%q", s)
		for _, shown := range []string{s[:len(s)/2], quoted[1 : len(quoted)/2]} {
			if strings.Contains(strings.ToLower(err.Error()), strings.ToLower(shown)) {
				t.Errorf("the error contains %q, half of a secret: %v", shown, err)
			}
		}
	}
	return err
}

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// TestEchoedCredentialsAreHidden checks that errors that quote a server's response do not contain credentials that the
// response repeats.
func TestEchoedCredentialsAreHidden(t *testing.T) {
	for name, answer := range echoes {
		t.Run(name, func(t *testing.T) {
			at := "http://" + serveEcho(t, echo(answer, "Authorization")) + "/x.git"
			wantHidden(t, remote.Repository{URL: at, Auth: remote.Auth{BearerToken: token}}, token)
			wantHidden(t, remote.Repository{URL: at, Auth: remote.Auth{Username: "x", Password: token}}, token, basic("x", token))
			decoded := serveEcho(t, func(r *http.Request) string {
				_, password, _ := r.BasicAuth()
				return answer(password)
			})
			wantHidden(t, remote.Repository{URL: "http://" + decoded + "/x.git", Auth: remote.Auth{Password: token}}, token)
		})
	}
}

// TestRedactedErrorsKeepTextAndType checks that hiding credentials keeps the rest of an error's text and the error's
// type.
func TestRedactedErrorsKeepTextAndType(t *testing.T) {
	at := "http://" + serveEcho(t, echo(echoes["ERR"], "Authorization")) + "/x.git"
	for _, auth := range []remote.Auth{{BearerToken: token}, {BearerToken: "den"}} {
		err := wantHidden(t, remote.Repository{URL: at, Auth: auth}, token)
		said, is := errors.AsType[*pktline.ErrorLine](err)
		if !strings.HasPrefix(err.Error(), "fetch "+at+": ") || !strings.Contains(err.Error(), "denied: Bearer ") || !is || said == nil {
			t.Errorf("%v, %v", err, is)
		}
	}
}

// TestCredentialsEchoedForPackAreHidden checks that credentials are hidden if they are repeated in the response to the
// request for objects.
func TestCredentialsEchoedForPackAreHidden(t *testing.T) {
	hash := strings.Repeat("a", 40)
	refs := pkt(hash + " HEAD\x00ofs-delta shallow side-band-64k symref=HEAD:refs/heads/main\n")
	refs += pkt(hash+" refs/heads/main\n") + "0000"
	for name, answer := range map[string]func(credentials string) string{
		"ERR":       func(c string) string { return pkt("ERR " + c) },
		"side band": func(c string) string { return "00000008NAK\n" + pkt("\x03denied: "+c) },
	} {
		t.Run(name, func(t *testing.T) {
			at := serveEcho(t, func(r *http.Request) string {
				if r.Method == http.MethodGet {
					return advertised(refs)
				}
				body := answer(r.Header.Get("Authorization"))
				return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			})
			wantHidden(t, remote.Repository{URL: "http://" + at + "/x.git", Auth: remote.Auth{BearerToken: token}}, token)
		})
	}
}

// TestEchoedProxyCredentialsAreHidden checks that the credentials for a proxy are hidden if the proxy repeats them.
func TestEchoedProxyCredentialsAreHidden(t *testing.T) {
	keys := gittest.SSHKeys(t)
	ssh := gittest.SSHAuth(t, keys, "person", "git.example.com "+string(gittest.MustRead(t, keys+"/host.pub")))
	ssh.ProxyUsername, ssh.ProxyPassword = "x", proxySecret
	web := remote.Auth{ProxyUsername: "x", ProxyPassword: proxySecret}
	for name, answer := range echoes {
		t.Run(name, func(t *testing.T) {
			proxy := "http://" + serveEcho(t, echo(answer, "Proxy-Authorization"))
			for url, auth := range map[string]remote.Auth{
				"https://git.example.com/x.git": web, "http://git.example.com/x.git": web, "ssh://git.example.com/x.git": ssh,
			} {
				wantHidden(t, remote.Repository{URL: url, Auth: auth, Proxy: proxy}, proxySecret, basic("x", proxySecret))
			}
		})
	}
}

// TestEchoedEnvironmentProxyIsHidden checks that the credentials for a proxy in the environment, which are part of its
// URL, are hidden.
func TestEchoedEnvironmentProxyIsHidden(t *testing.T) {
	if os.Getenv("QUORATE_TEST_ENV_PROXY") != "" { // a process reads these variables only once
		wantHidden(t, remote.Repository{URL: "https://git.example.com/x.git"}, "PROXYs3cret", basic("x", "PROXYs3cret"))
		return
	}
	proxy := serveEcho(t, echo(echoes["header without colon"], "Proxy-Authorization"))
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEchoedEnvironmentProxyIsHidden$")
	child.Env = []string{"QUORATE_TEST_ENV_PROXY=1", "HTTPS_PROXY=http://x:PROXYs3cret@" + proxy}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestEchoedGitHubAppIsHidden checks that the app's claim is hidden if GitHub's API repeats it, and that the API's
// token is hidden if the git server repeats it.
func TestEchoedGitHubAppIsHidden(t *testing.T) {
	hub := gittest.NewGitHub(t)
	for name, answer := range echoes {
		t.Run(name, func(t *testing.T) {
			claims := make(chan string, 1)
			api := serveEcho(t, func(r *http.Request) string {
				header := r.Header.Get("Authorization")
				select {
				case claims <- strings.TrimPrefix(header, "Bearer "):
				default:
				}
				return answer(header)
			})
			git := serveEcho(t, echo(answer, "Authorization"))
			r := remote.Repository{URL: "http://" + git + "/owner/x.git", Auth: remote.Auth{GitHubApp: hub.App("http://" + api)}}
			err := wantHidden(t, r)
			if claim := <-claims; strings.Contains(err.Error(), claim[:len(claim)/2]) {
				t.Errorf("the error contains half of the app's claim: %v", err)
			}
			issues := serveEcho(t, func(*http.Request) string {
				body := fmt.Sprintf(`{"token": %q}`, token)
				return fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			})
			r.Auth.GitHubApp = hub.App("http://" + issues)
			wantHidden(t, r, token, basic("x-access-token", token))
		})
	}
}
