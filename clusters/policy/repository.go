package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	registry        = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]+)?$`)
	pathElement     = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)
	elementPatterns = regexp.MustCompile(`^[a-z0-9._*-]+$`)
)

// checkRepository requires a pattern to contain a registry. Otherwise, anyone with a registry could serve a matching
// image.
func checkRepository(pattern string) error {
	host, path, has := strings.Cut(pattern, "/")
	if !has || !registry.MatchString(host) || !isRegistry(host) {
		return errors.New("a pattern must begin with a registry name that does not contain *: for " +
			"example, registry.example.com/team/* or docker.io/library/etcd")
	}
	elements := strings.Split(path, "/")
	for i, element := range elements {
		switch {
		case element == Everything && i == len(elements)-1:
		case !elementPatterns.MatchString(element) || strings.Contains(element, Everything):
			return fmt.Errorf("%q cannot be part of a repository: remove any tag or digest; * matches any characters "+
				"between two slashes, and %s at the end matches everything below", element, Everything)
		}
	}
	return nil
}

// matchesRepository compares a repository with a pattern: first the registry, and then the path, element by element.
func matchesRepository(pattern, repository string) bool {
	want, have := strings.Split(inFull(pattern), "/"), strings.Split(inFull(repository), "/")
	if want[0] != have[0] {
		return false
	}
	want, have = want[1:], have[1:]
	below := want[len(want)-1] == Everything
	if len(have) < len(want) || len(have) > len(want) && !below {
		return false
	}
	if below {
		want = want[:len(want)-1]
	}
	for i, element := range have {
		if !pathElement.MatchString(element) || i < len(want) && !matches(want[i], element) {
			return false
		}
	}
	return true
}

// inFull returns a repository with its registry. Like nodes, it uses Docker Hub by default.
func inFull(repository string) string {
	const hub = "docker.io"
	host, path, has := strings.Cut(repository, "/")
	if !has || !isRegistry(host) {
		host, path = hub, repository
	}
	if host == "index.docker.io" {
		host = hub
	}
	if host == hub && path != Everything && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return host + "/" + path
}

// isRegistry reports whether nodes treat the first element of a repository as a registry.
func isRegistry(host string) bool { return strings.ContainsAny(host, ".:") || host == "localhost" }
