package gittest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"quorate.dev/quorate/gitsource/remote"
)

// GitHub fakes the part of GitHub's API that issues tokens.
type GitHub struct {
	Key    *rsa.PrivateKey
	Status int
	Header http.Header
	Given  atomic.Int32
	Body   string
	// Asked is the last token request.
	Asked any
}

// NewGitHub returns a fake GitHub with one app, which has a new key.
func NewGitHub(t testing.TB) *GitHub {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &GitHub{Key: key}
}

// App returns the app. base is the URL of the server.
func (g *GitHub) App(base string) remote.GitHubApp {
	return remote.GitHubApp{ID: "12", InstallationID: "34", BaseURL: base + "/api/v3",
		PrivateKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(g.Key)})}
}

func (g *GitHub) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	for name := range g.Header {
		w.Header().Set(name, g.Header.Get(name))
	}
	switch {
	case g.Status != 0:
		http.Error(w, "\x1b[31mthe server's words", g.Status)
		return
	case request.Method != http.MethodPost || request.URL.Path != "/api/v3/app/installations/34/access_tokens":
		http.Error(w, "no such path", http.StatusNotFound)
		return
	}
	if err := g.believes(strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var asked any
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.Asked = asked
	w.WriteHeader(http.StatusCreated)
	if g.Body != "" {
		fmt.Fprint(w, g.Body)
		return
	}
	fmt.Fprintf(w, `{"token": "%s%d", "expires_at": "2030-01-01T00:00:00Z", "permissions": {"contents": "read"}}`,
		Secret, g.Given.Add(1))
}

// believes validates an app's claims as GitHub does.
func (g *GitHub) believes(claim string) error {
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(claim, &claims, func(*jwt.Token) (any, error) { return g.Key.Public(), nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer("12"), jwt.WithIssuedAt(), jwt.WithExpirationRequired())
	if err != nil {
		return err
	}
	if ahead := time.Until(claims.ExpiresAt.Time); ahead > 10*time.Minute ||
		time.Since(claims.IssuedAt.Time) < 50*time.Second {
		return fmt.Errorf("issued %s, expires %s", claims.IssuedAt, claims.ExpiresAt)
	}
	return nil
}
