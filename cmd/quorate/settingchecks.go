package main

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"quorate.dev/quorate/clusters"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/reconcile/notify"
)

// settingChecks contains checks of values in a configuration file, by flag, in addition to those of the flag's parser.
// They find what a run would refuse later, so that all errors are reported together, with their lines.
var settingChecks = map[string]func(value string) error{
	"etcd-timeout":    durationIn(1, 0),
	"cluster-timeout": durationIn(1, 0),
	"fetch-timeout":   durationIn(1, 0),
	"lease-duration":  durationIn(1, clusters.MaxLeaseDuration),
	"git-interval":    durationIn(time.Second, 0),
	"etcd-interval":   durationIn(time.Second, 0),
	"resync":          durationIn(time.Second, 0),

	"etcd-access":           among("etcd-access"),
	"log-level":             among("log-level"),
	"log-format":            among("log-format"),
	"notify-format":         among("notify-format"),
	"listen":                checkListen,
	"notify":                checkURL,
	"pushgateway":           checkURL,
	"heartbeat":             checkURL,
	"default-namespace":     checkNamespace,
	"report-status-context": checkContext,

	"branch": func(value string) error { return checkSelector(refs.Selector{Branch: value}) },
	"tag":    func(value string) error { return checkSelector(refs.Selector{Tag: value}) },
	"semver": func(value string) error { return checkSelector(refs.Selector{SemVer: value}) },
	"ref":    func(value string) error { return checkSelector(refs.Selector{Name: value}) },
	"commit": func(value string) error { return checkSelector(refs.Selector{Commit: value}) },
}

// durationIn returns a check for durations. If most is 0, there is no maximum.
func durationIn(least, most time.Duration) func(string) error {
	return func(value string) error {
		d, err := time.ParseDuration(value)
		switch {
		case err != nil:
			return nil //nolint:nilerr // the parser reports it
		case d < least && least < time.Second:
			return fmt.Errorf("%s: must be longer than 0s", value)
		case d < least:
			return fmt.Errorf("%s: must be at least %s", value, least)
		case most > 0 && d > most:
			return fmt.Errorf("%s: must be at most %s", value, most)
		}
		return nil
	}
}

// choices contains the values of flags that accept only a few.
var choices = map[string][]string{
	"etcd-access":   {"auto", "direct", "port-forward"},
	"log-level":     {"debug", "info", "warn", "error"},
	"log-format":    {"text", "json"},
	"notify-format": {string(notify.JSON), string(notify.Slack), string(notify.CloudEvents)},
}

// among returns a check that the value is one of a flag's choices.
func among(flag string) func(string) error {
	return func(value string) error {
		if !slices.Contains(choices[flag], value) {
			return fmt.Errorf("%q: expected one of %s", value, strings.Join(choices[flag], ", "))
		}
		return nil
	}
}

func checkListen(value string) error {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q: expected an address with a port, such as :8080", value)
	}
	return nil
}

// bracedVariable matches the notation of a shell for a variable.
var bracedVariable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// checkBraces rejects ${NAME}, which is not expanded, in a URL.
func checkBraces(value string) error {
	if found := bracedVariable.FindStringSubmatch(value); found != nil {
		return fmt.Errorf("%s is not replaced; write $(%s) for the environment variable", found[0], found[1])
	}
	return nil
}

// checkURL checks a URL. Errors do not contain it, because it may be secret. @FILE is checked when the file is read.
func checkURL(value string) error {
	if strings.HasPrefix(value, "@") {
		return nil
	}
	if err := checkBraces(value); err != nil {
		return err
	}
	_, err := parseEndpoint(value)
	return err
}

func checkNamespace(value string) error {
	if errs := validation.IsDNS1123Label(value); len(errs) > 0 {
		return fmt.Errorf("%q is not a namespace name: %s", value, errs[0])
	}
	return nil
}

func checkContext(value string) error {
	if !contextName.MatchString(value) {
		return errors.New("expected up to 40 letters, digits and any of . _ / -")
	}
	return nil
}

func checkSelector(s refs.Selector) error {
	_, err := s.Normalized()
	return err
}

// ownSetting matches a setting after a location.
var ownSetting = regexp.MustCompile(`,([a-z][a-z-]*)=`)

// checkLocation rejects a location with settings after it, as in --source.
func checkLocation(location string) error {
	if own := ownSetting.FindStringSubmatch(location); own != nil &&
		new(source).flags().Lookup(own[1]) != nil {
		return fmt.Errorf("expected only a location; write %s as a separate setting of this entry", own[1])
	}
	return checkBraces(location)
}
