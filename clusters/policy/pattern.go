package policy

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/config"
)

// Kind is a kind of request in a declaration.
type Kind string

// These are the kinds, which are also the names of their flags.
const (
	Images          Kind = "allow-image-repository"
	PriorityClasses Kind = "allow-priority-class"
	Annotations     Kind = "allow-annotation"
	Labels          Kind = "allow-label"
	Tolerations     Kind = "allow-toleration"
	NodeSelectors   Kind = "allow-node-selector"
	NetworkPeers    Kind = "allow-network-peer"
	ServiceAccounts Kind = "allow-service-account"
	KMSKeys         Kind = "allow-kms-key"
	LockTimes       Kind = "allow-lock-for"
	BackupsPerDay   Kind = "allow-backups-per-day"
	// BackupDestinations and Adoptions are the only kinds for which nothing is allowed without a setting.
	BackupDestinations Kind = "allow-backup-destination"
	Adoptions          Kind = "allow-adoption"
)

// Kinds lists every Kind.
var Kinds = []Kind{
	Images, PriorityClasses, Annotations, Labels, Tolerations, NodeSelectors, NetworkPeers, ServiceAccounts,
	KMSKeys, LockTimes, BackupsPerDay, BackupDestinations, Adoptions,
}

// Setting returns the name of the setting in the configuration file, in an entry of sources or in sourceDefaults.
func (k Kind) Setting() string { return config.SourceNameOf(string(k)) }

// Check returns an error if a pattern of that kind is invalid.
func (k Kind) Check(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("the pattern is empty; to allow nothing, leave the whole setting empty")
	case pattern == Everything:
		return nil
	case k == Images:
		return checkRepository(pattern)
	case k == PriorityClasses:
		if !classPattern.MatchString(pattern) {
			return errors.New("expected a PriorityClass name, such as tenant-*; * matches any characters")
		}
		return nil
	case k == BackupDestinations:
		return checkDestination(pattern)
	case k == Adoptions:
		return checkAddress(pattern)
	case k == NetworkPeers:
		return checkPeer(pattern)
	case k == ServiceAccounts, k == KMSKeys, k == LockTimes, k == BackupsPerDay:
		return k.checkBackup(pattern)
	case k == Tolerations:
		return tolerationOf(pattern).check()
	case k == Labels, k == NodeSelectors:
		return entryOf(pattern).checkLabel()
	default:
		return entryOf(pattern).check()
	}
}

var (
	classPattern = regexp.MustCompile(`^[-a-z0-9.*]+$`)
	keyPattern   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[-A-Za-z0-9_.*]+$`)
	valuePattern = regexp.MustCompile(`^([A-Za-z0-9*]([-A-Za-z0-9_.*]*[A-Za-z0-9*])?)?$`)
	nameOfKey    = regexp.MustCompile(`^[-A-Za-z0-9_.]+$`)
)

// entry is a pattern KEY or KEY=VALUE for an entry in a map.
type entry struct {
	key, value string
	// any specifies that every value is allowed.
	any bool
}

func entryOf(pattern string) entry {
	key, value, has := strings.Cut(pattern, "=")
	return entry{key, value, !has || value == "*" || value == Everything}
}

func (e entry) check() error {
	switch {
	case !keyPattern.MatchString(e.key):
		return fmt.Errorf("%q is not a key: expected "+
			"NAME or DOMAIN/NAME, such as prometheus.io/*; * in NAME matches any characters", e.key)
	case strings.Contains(e.key, Everything):
		return fmt.Errorf("%q: %s allows everything, and must be the whole pattern; * matches any characters of a name",
			e.key, Everything)
	}
	return nil
}

// longestValue is the maximum length of the value of a label or taint.
const longestValue = 63

// checkLabel checks the pattern for a label or taint. Unlike the value of an annotation, its value cannot be arbitrary
// text. A pattern that no value can match would silently allow nothing.
func (e entry) checkLabel() error {
	if err := e.check(); err != nil {
		return err
	}
	if e.any || valuePattern.MatchString(e.value) && len(strings.ReplaceAll(e.value, "*", "")) <= longestValue {
		return nil
	}
	return fmt.Errorf("%q is not a valid value: expected up to %d "+
		"letters, digits, '-', '_' and '.', with a letter or a "+
		"digit at both ends; * matches any of these", e.value, longestValue)
}

// of reports whether the pattern matches an entry with the given key and value.
func (e entry) of(key, value string) bool {
	return matchesKey(e.key, key) && (e.any || matches(e.value, value))
}

// anyOf reports whether the pattern matches entries with the given key, whatever their value.
func (e entry) anyOf(key string) bool { return e.any && matchesKey(e.key, key) }

// matchesKey reports whether a pattern matches a key. * never matches any part of a domain, because the domain
// determines the meaning of the key.
func matchesKey(pattern, key string) bool {
	domain, rest := cutDomain(pattern)
	ofKey, own := cutDomain(key)
	return domain == ofKey && nameOfKey.MatchString(own) && matches(rest, own)
}

// cutDomain splits a key into its domain, including the slash, and its name.
func cutDomain(key string) (domain, name string) {
	i := strings.LastIndexByte(key, '/')
	return key[:i+1], key[i+1:]
}

// matches reports whether a pattern matches text. * matches any number of characters.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}

// matchesAddress reports whether a pattern matches HOST:PORT. * matches letters, digits and dashes. If the rest of the
// host is a part of an IPv4 address, * matches only digits, so that the pattern does not match DNS names.
func matchesAddress(pattern, address string) bool {
	port := strings.LastIndexByte(pattern, ':') + 1
	star, host := "[a-z0-9-]*", pattern[:port]
	if strings.ContainsAny(host, "0123456789") && strings.Trim(host, "0123456789.*:") == "" {
		star = "[0-9]*"
	}
	expression := strings.ReplaceAll(regexp.QuoteMeta(host), `\*`, star) +
		strings.ReplaceAll(regexp.QuoteMeta(pattern[port:]), `\*`, "[0-9]*")
	matched, err := regexp.MatchString("^"+expression+"$", address)
	return err == nil && matched && (pattern == address || !isLocal(address))
}

// isLocal reports whether an address is local to the machine or its link, so that only an exact pattern allows it.
func isLocal(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast())
}

// system is the prefix of Kubernetes' own priority classes, whose pods take precedence over everything except the
// node's own pods. ownAccounts is the prefix of the ServiceAccounts that deploy creates for Quorate.
const (
	system      = "system-"
	ownAccounts = "quorate"
)

// matchesReserved reports whether a pattern matches a name. If the name has the prefix reserved, the pattern must have
// it too.
func matchesReserved(reserved, pattern, name string) bool {
	return strings.HasPrefix(pattern, reserved) == strings.HasPrefix(name, reserved) && matches(pattern, name)
}

// separated returns an explanation of how to separate several patterns, if a different separator seems to have been
// used.
func separated(pattern string) string {
	if strings.ContainsAny(pattern, ", ") {
		return "; separate several patterns with ;"
	}
	return ""
}

// Setting adds the patterns of a setting, separated by semicolons, to the existing patterns. An empty setting adds no
// patterns.
func (a Allowed) Setting(kind Kind, value string) (Allowed, error) {
	patterns := slices.Clone(a.Patterns)
	if value != "" {
		for _, pattern := range strings.Split(value, ";") {
			if err := kind.Check(pattern); err != nil {
				return a, fmt.Errorf("%q: %w%s", pattern, err, separated(pattern))
			}
			patterns = append(patterns, pattern)
		}
	}
	return Allowed{Limited: true, Patterns: patterns}, nil
}
