package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"quorate.dev/quorate/internal/printable"
)

// GitHubApp is an installed GitHub App. It obtains a new token, valid for one hour, for each session. It never prints
// its key.
type GitHubApp struct {
	// ID is the app's ID, a number, or its client ID.
	ID string
	// InstallationID is the number of the app's installation in an organization or for a user.
	InstallationID string
	// PrivateKey is the app's RSA private key in PEM.
	PrivateKey []byte
	// BaseURL is the URL of the API. The default is the API of github.com. For a GitHub Enterprise Server, set
	// https://HOST/api/v3.
	BaseURL string
}

const (
	gitHubAPI = "https://api.github.com"
	// claimHolds is the lifetime of the app's claim. GitHub accepts up to ten minutes. clocksDiffer is the tolerated
	// clock difference.
	claimHolds, clocksDiffer = 8 * time.Minute, time.Minute
	// maxTokenBytes is the maximum size of GitHub's response, which usually is a few KiB.
	maxTokenBytes = 1 << 20
)

var (
	isAppID  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	isNumber = regexp.MustCompile(`^[0-9]{1,20}$`)
	// isRepository matches the repository names that GitHub accepts.
	isRepository = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	isToken      = regexp.MustCompile(`^[\x21-\x7e]{1,1000}$`)
)

// String describes the app without its key.
func (g GitHubApp) String() string { return "GitHub App" }

// GoString prevents %#v from printing the key.
func (g GitHubApp) GoString() string { return "remote.GitHubApp{}" }

func (g GitHubApp) given() bool {
	return g.ID != "" || g.InstallationID != "" || len(g.PrivateKey) > 0 || g.BaseURL != ""
}

func (g GitHubApp) base() string {
	if g.BaseURL == "" {
		return gitHubAPI
	}
	return strings.TrimRight(g.BaseURL, "/")
}

func (g GitHubApp) problems() []string {
	if !g.given() {
		return nil
	}
	var problems []string
	switch {
	case g.ID == "":
		problems = append(problems, "githubAppID is missing")
	case !isAppID.MatchString(g.ID):
		problems = append(problems, "githubAppID is neither a number nor a client ID")
	}
	switch {
	case g.InstallationID == "":
		problems = append(problems, "githubAppInstallationID is missing")
	case !isNumber.MatchString(g.InstallationID):
		problems = append(problems, "githubAppInstallationID is not a number")
	}
	if len(g.PrivateKey) == 0 {
		problems = append(problems, "githubAppPrivateKey is missing")
	} else if _, err := jwt.ParseRSAPrivateKeyFromPEM(g.PrivateKey); err != nil {
		problems = append(problems, "githubAppPrivateKey is not a PEM RSA private key")
	}
	if !g.baseIsSafe() {
		problems = append(problems,
			"githubAppBaseURL is not a URL like https://HOST/api/v3, without credentials and without a query")
	}
	return problems
}

func (g GitHubApp) baseIsSafe() bool {
	u, err := url.Parse(g.base())
	if err != nil {
		return false
	}
	isPlain := u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
	staysSecret := u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
	return isPlain && staysSecret && printable.Is(u.Path)
}

// repositoryOf returns GitHub's name for the repository at the address, or "". The name omits the owner, because
// the installation determines the owner.
func repositoryOf(address *url.URL) string {
	name := strings.TrimSuffix(path.Base(address.Path), ".git")
	if !isRepository.MatchString(name) {
		return ""
	}
	return name
}

// request returns the request for a token that can only read the given repository, even if the installation can access
// other repositories.
func (g GitHubApp) request(ctx context.Context, repository string, now time.Time) (*http.Request, error) {
	claim, err := g.claim(now)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"repositories": []string{repository},
		"permissions": map[string]string{"contents": "read"}})
	if err != nil {
		return nil, err
	}
	at := g.base() + "/app/installations/" + g.InstallationID + "/access_tokens"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("githubAppBaseURL is not a URL")
	}
	request.Header.Set("Authorization", "Bearer "+claim)
	request.Header.Set("Accept", "application/vnd.github+json")
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	return request, nil
}

// token obtains a token for the given repository.
func (g GitHubApp) token(ctx context.Context, client *http.Client, repository string, now time.Time) (string, error) {
	request, err := g.request(ctx, repository, now)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", g.unreached(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return "", explainedError{g.refused(response, repository)}
	}
	var answer struct{ Token string }
	err = json.NewDecoder(io.LimitReader(response.Body, maxTokenBytes)).Decode(&answer)
	if err != nil || !isToken.MatchString(answer.Token) {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", explainedError{fmt.Errorf("%s does not respond like the GitHub API; check githubAppBaseURL",
			g.base())}
	}
	return answer.Token, nil
}

// unreached explains why the API did not respond. An error that is already explained is returned unchanged.
func (g GitHubApp) unreached(err error) error {
	if _, ok := errors.AsType[explainedError](err); ok {
		return err
	}
	text := explainReach(err)
	if text == "" {
		return fmt.Errorf("request a token from %s: %w", g.base(), err)
	}
	return explainedError{fmt.Errorf("%s %s", g.base(), text)}
}

// claim returns the app's claim about itself, signed with its key.
func (g GitHubApp) claim(now time.Time) (string, error) {
	key, err := jwt.ParseRSAPrivateKeyFromPEM(g.PrivateKey)
	if err != nil {
		return "", explainedError{errors.New("githubAppPrivateKey is not a PEM RSA private key")}
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer:    g.ID,
		IssuedAt:  jwt.NewNumericDate(now.Add(-clocksDiffer)),
		ExpiresAt: jwt.NewNumericDate(now.Add(claimHolds)),
	}).SignedString(key)
	if err != nil {
		return "", explainedError{errors.New("githubAppPrivateKey cannot sign: a 2048-bit RSA key is required")}
	}
	return signed, nil
}

// refused returns an error with instructions for the user, without repeating the server's words.
func (g GitHubApp) refused(response *http.Response, repository string) error {
	status := response.StatusCode
	limited := status == http.StatusForbidden &&
		(response.Header.Get("Retry-After") != "" || response.Header.Get("X-RateLimit-Remaining") == "0")
	switch {
	case status == http.StatusTooManyRequests || limited:
		return fmt.Errorf("%s limits how often the GitHub App %s may request a token (status %d); send fewer requests",
			g.base(), g.ID, status)
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%s did not accept the credentials of the GitHub App %s (status 401): "+
			"check that githubAppPrivateKey belongs to githubAppID, and check the local clock", g.base(), g.ID)
	case status == http.StatusForbidden:
		return fmt.Errorf("%s did not issue a token to the GitHub App %s (status 403): "+
			"check whether its installation %s is suspended",
			g.base(), g.ID, g.InstallationID)
	case status == http.StatusNotFound:
		return fmt.Errorf("%s does not have the installation %s of the GitHub App %s (status 404); recent changes "+
			"may take a minute", g.base(), g.InstallationID, g.ID)
	case status == http.StatusUnprocessableEntity:
		return fmt.Errorf("%s did not issue a token to the GitHub App %s for the repository %s (status 422): "+
			"check that its installation %s includes that repository, "+
			"with permission to read contents", g.base(), g.ID, repository, g.InstallationID)
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("%s could not issue a token to the GitHub App %s (status %d); "+
			"the server has a problem, which may be temporary", g.base(), g.ID, status)
	}
	return fmt.Errorf("%s did not issue a token to the GitHub App %s (status %d); check githubAppBaseURL", g.base(),
		g.ID, status)
}
