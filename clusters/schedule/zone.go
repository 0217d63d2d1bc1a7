package schedule

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// zonePart is one part of the name of a zone, as a CronJob takes it.
var zonePart = regexp.MustCompile(`^[A-Za-z0-9_+][-A-Za-z0-9_+]{0,13}$`)

// ofMachine are names that some machines have in their directory of zones beside those of the
// database: what they mean elsewhere, if anything, is something else.
var ofMachine = []string{"local", "localtime", "posix", "posixrules", "right"}

// CheckTimeZone says what is wrong with the name of a time zone.
func CheckTimeZone(name string) error {
	_, err := parseZone(name)
	return err
}

// parseZone returns the time zone of that name.
func parseZone(name string) (*time.Location, error) {
	parts := strings.Split(name, "/")
	unknown := func(part string) bool { return !zonePart.MatchString(part) }
	if slices.ContainsFunc(parts, unknown) || slices.Contains(ofMachine, strings.ToLower(parts[0])) {
		return nil, fmt.Errorf("%q is no name of the IANA database, such as Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q: the IANA database has no time zone of that name", name)
	}
	return zone, nil
}
