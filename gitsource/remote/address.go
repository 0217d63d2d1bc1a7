package remote

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

var (
	hasScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	// scpForm matches the ssh addresses that git accepts in addition to URLs. They have a colon before any slash. The
	// host before the colon may have a user and, in brackets, a port.
	scpForm = regexp.MustCompile(`^(?:([^@/\\:\[\]]+)@)?([^@/\\:\[\]]+|\[[^@/\\\[\]]+\]):(.*)$`)
	// sshName restricts user and host names to safe characters.
	sshName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// IsAddress reports whether a location looks like an address on a server: a URL, or user@host:path as in scp.
func IsAddress(location string) bool {
	return hasScheme.MatchString(location) || scpForm.MatchString(location)
}

// ParseAddress parses the location of a repository on a server. The result has one of the schemes https, http and ssh;
// the path of an ssh URL is the argument for git-upload-pack. Errors never repeat a location that may contain a
// password.
func ParseAddress(location string) (*url.URL, error) {
	if !hasScheme.MatchString(location) {
		return parseSCP(location)
	}
	u, err := url.Parse(location)
	if err != nil || u.Host == "" && u.Scheme != "file" {
		return nil, errors.New("the source is not a valid URL")
	}
	switch u.Scheme {
	case "https", "http":
		return u, checkHTTP(u)
	case "ssh":
		if strings.HasPrefix(u.Path, "/~") { // like git: a home directory on the server
			u.Path = u.Path[1:]
		}
		return u, checkSSH(u)
	case "file":
		return nil, errors.New("file:// is not supported; give the path itself")
	case "git+ssh", "ssh+git":
		return nil, fmt.Errorf("%s:// is an old spelling; write ssh://", u.Scheme)
	}
	return nil, fmt.Errorf("scheme %s is not supported; use https, ssh, http or a local path", u.Scheme)
}

func parseSCP(location string) (*url.URL, error) {
	parts := scpForm.FindStringSubmatch(location)
	if parts == nil {
		return nil, errors.New("the source is neither a URL nor of the form user@host:path")
	}
	user, host, path := parts[1], parts[2], parts[3]
	if strings.HasPrefix(path, ":") {
		return nil, fmt.Errorf("%s:: names a program for git to run, which is not supported; "+
			"use https, ssh, http or a local path", printable.Text(host))
	}
	if inside, bracketed := strings.CutPrefix(host, "["); bracketed && strings.Count(host, ":") == 1 {
		host = strings.TrimSuffix(inside, "]") // git accepts [host:port] in this form
	}
	authority := host
	if user != "" {
		authority = url.User(user).String() + "@" + host
	}
	u, err := url.Parse("ssh://" + authority)
	if err != nil || u.Host == "" {
		return nil, errors.New("the source is neither a URL nor of the form user@host:path")
	}
	u.Path = path
	return u, checkSSH(u)
}

func checkHTTP(u *url.URL) error {
	switch {
	case u.User != nil:
		return fmt.Errorf("the URL of %s contains credentials; "+
			"pass them separately, so that logs and process lists do not show them", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return errQuery(u)
	}
	return nil
}

func checkSSH(u *url.URL) error {
	_, hasPassword := u.User.Password()
	switch {
	case hasPassword:
		return fmt.Errorf("the URL of %s contains a password; "+
			"ssh requires a private key, in the credentials file named identity", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return errQuery(u)
	case u.User != nil && !sshName.MatchString(u.User.Username()):
		return fmt.Errorf("the user in the URL of %s is not a valid user name", u.Host)
	case !sshName.MatchString(u.Hostname()) && !isAddress(u.Hostname()):
		return errors.New("the host in the URL is not a valid host name")
	case strings.Trim(u.Path, "/") == "":
		return fmt.Errorf("the URL of %s does not name a repository", u.Host)
	case strings.HasPrefix(u.Path, "-") || !printable.Is(u.Path):
		return fmt.Errorf("the path in the URL of %s is not a repository path", u.Host)
	}
	return nil
}

// isAddress reports whether host is an IP address.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil && printable.Is(host)
}

func errQuery(u *url.URL) error {
	return fmt.Errorf("the URL of %s has a query or a fragment; "+
		"specify the branch, tag or commit separately", u.Host)
}
