// Package schedule parses backup schedules and determines the latest scheduled time. It accepts the same expressions as
// CronJobs, and determines the same times as Kubernetes, because it uses the same library. It is deterministic: the
// current time is an argument, and time zones do not depend on the machine.
package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
	_ "time/tzdata" // makes zones available on machines without zoneinfo

	"github.com/robfig/cron/v3"
)

// longest is the maximum length of an expression, as in the EtcdCluster definition.
const longest = 100

// horizon is the maximum age of the time that Newest returns.
const horizon = 400 * 24 * time.Hour

// Schedule is a recurring schedule. The zero value is a schedule without any times.
type Schedule struct {
	expression string
	times      *cron.SpecSchedule
}

// Parse parses an expression in the format of spec.backup.schedule. key, in the form NAMESPACE/NAME, determines the
// numbers that replace H.
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

// Cron returns the expression for a CronJob. The CronJob's time zone is a separate field.
func (s Schedule) Cron() string { return s.expression }

// PerDay returns the number of scheduled times on a scheduled day. It does not depend on the numbers that replace H.
func (s Schedule) PerDay() int {
	if s.times == nil {
		return 0
	}
	const star = 1 << 63 // the library's bit for *
	return bits.OnesCount64(s.times.Minute&^star) * bits.OnesCount64(s.times.Hour&^star)
}

// Newest returns the latest scheduled time that is not after now, in UTC. It returns zero if no time was scheduled in
// the last 400 days.
//
// As in Kubernetes, an hour that a time zone skips has no scheduled times, and each time in a repeated hour occurs
// twice. In the few zones whose clocks change at midnight or by half an hour, Kubernetes may skip a time after the
// change, depending on when it checks. Newest counts this time.
func (s Schedule) Newest(now time.Time) time.Time {
	if s.times == nil {
		return time.Time{}
	}
	// after(t) never decreases as t increases, so a binary search finds the latest time that has passed.
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

// after returns the first scheduled time after t, or a very distant time if the library finds none within five years.
func (s Schedule) after(t time.Time) time.Time {
	next := s.times.Next(t.UTC())
	if next.IsZero() {
		return t.AddDate(1000, 0, 0)
	}
	return next
}

// checkForm rejects expressions that the library accepts, but CronJobs or this program do not.
func checkForm(expression string) error {
	switch {
	case len(expression) > longest:
		return fmt.Errorf("it has %d characters, but the maximum is %d", len(expression), longest)
	case strings.Contains(expression, "TZ"):
		return errors.New("set the time zone in timeZone, not in the schedule")
	case strings.HasPrefix(expression, "@every"):
		return errors.New("@every counts from an unknown moment; use the five fields of cron, or @hourly, @daily, " +
			"@weekly, @monthly or @yearly")
	}
	return nil
}

// parseTimes parses an expression with the library and rejects schedules that never occur.
func parseTimes(expression string) (*cron.SpecSchedule, error) {
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", expression, err)
	}
	times, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q is not a schedule of fixed times", expression)
	}
	// Reject empty fields, such as ",", because it would take a long time to search for matching times.
	for _, field := range []uint64{times.Minute, times.Hour, times.Dom, times.Month, times.Dow} {
		if field == 0 {
			return nil, fmt.Errorf("%q never matches: one of its fields is empty", expression)
		}
	}
	times.Location = time.UTC
	if times.Next(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q never matches: no year has that day", expression)
	}
	return times, nil
}
