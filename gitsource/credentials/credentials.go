// Package credentials reads the credentials for a git server from a directory, such as a mounted Secret, or from the
// environment. It never reads a home directory.
package credentials

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/remote"
)

// Environment variables that contain credentials.
const (
	UsernameVariable = "QUORATE_GIT_USERNAME"
	PasswordVariable = "QUORATE_GIT_PASSWORD"
	TokenVariable    = "QUORATE_GIT_TOKEN"
)

// Names of the files to read from the directory. Other files are ignored.
const (
	username                = "username"
	password                = "password"
	bearerToken             = "bearerToken"
	caBundle                = "ca.crt"
	clientCertificate       = "tls.crt"
	clientKey               = "tls.key"
	identity                = "identity"
	passphrase              = "passphrase"
	knownHosts              = "known_hosts"
	gitHubAppID             = "githubAppID"
	gitHubAppInstallationID = "githubAppInstallationID"
	gitHubAppPrivateKey     = "githubAppPrivateKey"
	gitHubAppBaseURL        = "githubAppBaseURL"
	proxyUsername           = "proxyUsername"
	proxyPassword           = "proxyPassword"
)

// maxFile is the maximum size of a file in the directory, in bytes: the size limit of a Secret.
const maxFile = 1 << 20

// Files returns the names of the files that are read from a directory.
func Files() []string {
	return []string{
		username, password, bearerToken, caBundle, clientCertificate, clientKey, identity, passphrase, knownHosts,
		gitHubAppID, gitHubAppInstallationID, gitHubAppPrivateKey, gitHubAppBaseURL, proxyUsername, proxyPassword,
	}
}

// Read reads a directory with the layout of a mounted Secret: one file for each key, all optional.
// gitsource.Options.Check checks whether the credentials are consistent. The error lists all unreadable files and
// matches gitsource.ErrOptions.
func Read(dir string) (remote.Auth, error) {
	parts := map[string]string{}
	var problems []string
	if _, err := os.ReadDir(dir); err != nil {
		return remote.Auth{}, fmt.Errorf("%w: read the credentials: %w", gitsource.ErrOptions, err)
	}
	for _, name := range Files() {
		content, err := readFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			problems = append(problems, err.Error())
		case strings.TrimSpace(content) == "":
			problems = append(problems, filepath.Join(dir, name)+" is empty")
		default:
			parts[name] = content
		}
	}
	switch {
	case len(problems) > 0:
		return remote.Auth{}, fmt.Errorf("%w: read the credentials: %s", gitsource.ErrOptions,
			strings.Join(problems, "; "))
	case len(parts) == 0:
		return remote.Auth{}, fmt.Errorf("%w: %s does not contain credentials; expected files named %s",
			gitsource.ErrOptions, dir,
			strings.Join(Files(), ", "))
	}
	return auth(dir, parts), nil
}

func readFile(name string) (string, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) && isLink(name) {
		return "", fmt.Errorf("%s is a link to a file that does not exist", name)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxFile {
		return "", fmt.Errorf("%s is larger than %d KiB", name, maxFile>>10)
	}
	return string(content), nil
}

func isLink(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func auth(dir string, parts map[string]string) remote.Auth {
	word := func(name string) string { return strings.TrimSpace(parts[name]) }
	file := func(name string) []byte { return []byte(parts[name]) }
	a := remote.Auth{
		Username: word(username), Password: word(password), BearerToken: word(bearerToken),
		CABundle: file(caBundle), ClientCertificate: file(clientCertificate), ClientKey: file(clientKey),
		Identity: file(identity), Passphrase: word(passphrase),
		GitHubApp: remote.GitHubApp{
			ID: word(gitHubAppID), InstallationID: word(gitHubAppInstallationID), PrivateKey: file(gitHubAppPrivateKey),
			BaseURL: word(gitHubAppBaseURL),
		},
		ProxyUsername: word(proxyUsername), ProxyPassword: word(proxyPassword),
	}
	if _, given := parts[knownHosts]; given {
		a.KnownHosts = filepath.Join(dir, knownHosts)
	}
	return a
}

// FromEnvironment returns a username and password, or a token, from environment variables. lookup is usually os.Getenv.
func FromEnvironment(lookup func(string) string) remote.Auth {
	word := func(name string) string { return strings.TrimSpace(lookup(name)) }
	return remote.Auth{Username: word(UsernameVariable), Password: word(PasswordVariable),
		BearerToken: word(TokenVariable)}
}
