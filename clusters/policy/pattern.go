package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind is one of the things that a declaration may ask for.
type Kind string

// The kinds, named as their settings are.
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
	// BackupDestinations are the only kind of which nothing is allowed without a setting.
	BackupDestinations Kind = "allow-backup-destination"
)

// Kinds lists every Kind.
var Kinds = []Kind{
	Images, PriorityClasses, Annotations, Labels, Tolerations, NodeSelectors, NetworkPeers, ServiceAccounts,
	KMSKeys, LockTimes, BackupsPerDay, BackupDestinations,
}

// Flag is the setting as it is given on a command line.
func (k Kind) Flag() string { return "--" + string(k) }

// Check says what is wrong with a pattern of that kind.
func (k Kind) Check(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("the pattern is empty; a setting that is empty as a whole allows nothing")
	case pattern == Everything:
		return nil
	case k == Images:
		return checkRepository(pattern)
	case k == PriorityClasses:
		if !classPattern.MatchString(pattern) {
			return errors.New("want the name of a PriorityClass, " +
				"in which * stands for any characters, such as tenant-*")
		}
		return nil
	case k == BackupDestinations:
		return checkDestination(pattern)
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

// entry is the pattern KEY or KEY=VALUE of an entry in a map.
type entry struct {
	key, value string
	// any value is allowed.
	any bool
}

func entryOf(pattern string) entry {
	key, value, has := strings.Cut(pattern, "=")
	return entry{key, value, !has || value == "*" || value == Everything}
}

func (e entry) check() error {
	switch {
	case !keyPattern.MatchString(e.key):
		return fmt.Errorf("%q is no key: "+
			"want NAME or DOMAIN/NAME, in whose NAME * stands for any characters, such as prometheus.io/*", e.key)
	case strings.Contains(e.key, Everything):
		return fmt.Errorf("%q: %s allows everything by itself alone; * stands for any characters of a name",
			e.key, Everything)
	}
	return nil
}

// longestValue is how long the value of a label, or of a taint, may be.
const longestValue = 63

// checkLabel checks the pattern of a label or a taint. Unlike that of an annotation, its value
// cannot be any text: a pattern of which no value is would allow nothing, and say nothing about
// that.
func (e entry) checkLabel() error {
	if err := e.check(); err != nil {
		return err
	}
	if e.any || valuePattern.MatchString(e.value) && len(strings.ReplaceAll(e.value, "*", "")) <= longestValue {
		return nil
	}
	return fmt.Errorf("%q cannot be a value: want up to %d letters, digits, '-', '_' and '.', with a letter or a "+
		"digit at both ends; * stands for any of these", e.value, longestValue)
}

// of reports whether the pattern is of an entry with that key and value.
func (e entry) of(key, value string) bool {
	return matchesKey(e.key, key) && (e.any || matches(e.value, value))
}

// anyOf reports whether entries with that key are matched whatever their value is.
func (e entry) anyOf(key string) bool { return e.any && matchesKey(e.key, key) }

// matchesKey compares a key with a pattern. The domain of a key is matched by itself alone: what a
// name means, its domain says.
func matchesKey(pattern, key string) bool {
	domain, rest := cutDomain(pattern)
	ofKey, own := cutDomain(key)
	return domain == ofKey && nameOfKey.MatchString(own) && matches(rest, own)
}

// cutDomain returns the domain of a key, with the slash, and its name.
func cutDomain(key string) (domain, name string) {
	i := strings.LastIndexByte(key, '/')
	return key[:i+1], key[i+1:]
}

// matches compares a text with a pattern in which * stands for any characters, or none.
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

// system is how the classes begin that are above everything that is not of the node itself, and ownAccounts how the
// accounts begin that deploy creates for Quorate.
const (
	system      = "system-"
	ownAccounts = "quorate"
)

// matchesReserved compares a name with a pattern. Names that begin with reserved need a pattern that does, too.
func matchesReserved(reserved, pattern, name string) bool {
	return strings.HasPrefix(pattern, reserved) == strings.HasPrefix(name, reserved) && matches(pattern, name)
}

// separated says how several patterns are separated, where they seem to be so otherwise.
func separated(pattern string) string {
	if strings.ContainsAny(pattern, ", ") {
		return "; several patterns have ; between them"
	}
	return ""
}

// Setting adds what a setting says to what it has said before: patterns with semicolons between
// them. An empty one allows nothing by itself.
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
