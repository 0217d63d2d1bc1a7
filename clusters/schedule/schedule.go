// Package schedule reads when a cluster is to be backed up, and says which of these times came last.
// It takes what a CronJob takes, and finds the times that Kubernetes finds, since it asks the same
// library. It is pure: the clock is an argument, and time zones do not depend on the machine's.
package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
	_ "time/tzdata" // so that zones are known where the machine has no zoneinfo

	"github.com/robfig/cron/v3"
)

// longest is how long an expression may be, as in the definition of EtcdCluster.
const longest = 100

// horizon is how far back Newest looks.
const horizon = 400 * 24 * time.Hour

// Schedule is when something happens again and again. Its zero value never happens.
type Schedule struct {
	expression string
	times      *cron.SpecSchedule
}

// Parse reads an expression as spec.backup.schedule has it. The key, NAMESPACE/NAME, decides what
// number each H stands for.
func Parse(expression, timeZone, key string) (Schedule, error) {
	zone, err := parseZone(timeZone)
	if err != nil {
		return Schedule{}, fmt.Errorf("time zone: %w", err)
	}
	if err := checkForm(expression); err != nil {
		return Schedule{}, err
	}
	resolved, err := resolve(expression, key)
	if err != nil {
		return Schedule{}, err
	}
	times, err := parseTimes(resolved)
	if err != nil {
		return Schedule{}, err
	}
	times.Location = zone
	return Schedule{resolved, times}, nil
}

// Cron is the expression for a CronJob, whose time zone goes in a field of its own.
func (s Schedule) Cron() string { return s.expression }

// PerDay is how often it happens on a day on which it does, whatever numbers each H stands for.
func (s Schedule) PerDay() int {
	if s.times == nil {
		return 0
	}
	const star = 1 << 63 // how the library marks a field that is *
	return bits.OnesCount64(s.times.Minute&^star) * bits.OnesCount64(s.times.Hour&^star)
}

// Newest is the newest time that is not after now, in UTC; zero if there is none in the 400 days
// before.
//
// As Kubernetes has it, an hour that a time zone skips has no times, and one that it repeats has its
// times twice. In the few zones whose clocks change at midnight or by half an hour, Kubernetes skips
// a time that follows the change, or not, depending on when it looks; here it counts.
func (s Schedule) Newest(now time.Time) time.Time {
	if s.times == nil {
		return time.Time{}
	}
	// The first time after t gets no earlier as t gets later, so the last t at which it is not yet
	// over is found by halving.
	newest := s.after(now.Add(-horizon))
	if newest.After(now) {
		return time.Time{}
	}
	for over := now; over.Sub(newest) > time.Second; {
		middle := newest.Add(over.Sub(newest) / 2)
		if next := s.after(middle); next.After(now) {
			over = middle
		} else {
			newest = next
		}
	}
	return newest
}

// after is the first time after t; a very distant one where the library finds none within five years.
func (s Schedule) after(t time.Time) time.Time {
	next := s.times.Next(t.UTC())
	if next.IsZero() {
		return t.AddDate(1000, 0, 0)
	}
	return next
}

// checkForm refuses what the library reads and a CronJob, or this program, does not take.
func checkForm(expression string) error {
	switch {
	case len(expression) > longest:
		return fmt.Errorf("it has %d characters; %d are the most", len(expression), longest)
	case strings.Contains(expression, "TZ"):
		return errors.New("a time zone goes in timeZone, and not into the schedule")
	case strings.HasPrefix(expression, "@every"):
		return errors.New("@every counts from an unknown moment; use the five fields of cron, or @hourly, @daily, " +
			"@weekly, @monthly or @yearly")
	}
	return nil
}

// parseTimes asks the library, and refuses what never happens.
func parseTimes(expression string) (*cron.SpecSchedule, error) {
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", expression, err)
	}
	times, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q is not a schedule of fixed times", expression)
	}
	// A field such as "," is empty; to look for its times would take long.
	for _, field := range []uint64{times.Minute, times.Hour, times.Dom, times.Month, times.Dow} {
		if field == 0 {
			return nil, fmt.Errorf("%q never happens: a field of it is empty", expression)
		}
	}
	times.Location = time.UTC
	if times.Next(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q never happens: no year has such a day", expression)
	}
	return times, nil
}
