package schedule

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// zonePart matches a part of a time zone name as accepted in a CronJob.
var zonePart = regexp.MustCompile(`^[A-Za-z0-9_+][-A-Za-z0-9_+]{0,13}$`)

// ofMachine lists names that exist in the zone directory of some machines but not in the IANA database. On other
// machines, they do not exist or have a different meaning.
var ofMachine = []string{"local", "localtime", "posix", "posixrules", "right"}

// CheckTimeZone returns an error unless name is a valid time zone name.
func CheckTimeZone(name string) error {
	_, err := parseZone(name)
	return err
}

// parseZone returns the named time zone.
func parseZone(name string) (*time.Location, error) {
	parts := strings.Split(name, "/")
	unknown := func(part string) bool { return !zonePart.MatchString(part) }
	if slices.ContainsFunc(parts, unknown) || slices.Contains(ofMachine, strings.ToLower(parts[0])) {
		return nil, fmt.Errorf("%q is not an IANA time zone, such as Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q: the IANA database does not contain this time zone", name)
	}
	return zone, nil
}
