package schedule

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

func parsed(t *testing.T, expression, zone string) Schedule {
	t.Helper()
	s, err := Parse(expression, zone, "prod/a")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestValidExpressionsAreAccepted(t *testing.T) {
	for _, expression := range []string{
		"0 * * * *", "*/15 * * * *", "*/90 */30 * * *", "0-30/5,45 1,2,3 ? * *", "5/10 * * * *", "0 0 * jan-MAR MON-fri", "  0\t0 1 1 0 ",
		"0 0 29 2 *", "0 0 31 2 1", "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually", "0 0 * * THU,thu-sat",
	} {
		s, err := Parse(expression, "Etc/UTC", "prod/a")
		if err != nil || s.Cron() != expression {
			t.Errorf("%q: %q, %v", expression, s.Cron(), err)
		}
	}
	for _, zone := range []string{"UTC", "Etc/UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia", "Etc/GMT+5", "EST5EDT", "GB-Eire"} {
		if _, err := Parse("@daily", zone, "prod/a"); err != nil {
			t.Error(err)
		}
	}
}

func TestInvalidExpressionsAreRejected(t *testing.T) {
	for expression, want := range map[string]string{
		"":                       "empty",
		"0 * * *":                "expected exactly 5 fields",
		"0 0 * * * *":            "expected exactly 5 fields",
		"0 0 0 * * * 2030":       "expected exactly 5 fields",
		"TZ=UTC 0 * * * *":       "timeZone",
		"CRON_TZ=UTC 0 * * * *":  "timeZone",
		"TZ=UTC":                 "timeZone",
		"@every 1h":              "@every",
		"@reboot":                "unrecognized descriptor",
		"@Daily":                 "unrecognized descriptor",
		" @daily":                "expected exactly 5 fields",
		"60 * * * *":             "above maximum",
		"0 24 * * *":             "above maximum",
		"0 0 0 * *":              "below minimum",
		"0 0 * * 7":              "above maximum",
		"0 22-2 * * *":           "beyond end",
		"*/0 * * * *":            "positive",
		"0 0 L * *":              "parse int",
		"0 0 15W * *":            "parse int",
		"0 0 * * FRI#3":          "parse int",
		"0 0 * * 5L":             "parse int",
		"0 0 31 2 *":             "never matches",
		"0 0 31 4,6,9,11 *":      "never matches",
		", * * * *":              "never matches",
		"0 0 * * ,":              "never matches",
		"H/15 * * * *":           "may only replace the whole minute or the whole hour",
		"H,H * * * *":            "may only replace the whole minute or the whole hour",
		"H(0-29) * * * *":        "may only replace the whole minute or the whole hour",
		"H 0-H * * *":            "may only replace the whole minute or the whole hour",
		"0 0 H * *":              "may only replace the whole minute or the whole hour",
		"0 0 * H *":              "may only replace the whole minute or the whole hour",
		"0 0 * * H":              "may only replace the whole minute or the whole hour",
		"H H * * THURSDAY":       "may only replace the whole minute or the whole hour",
		"h * * * *":              "parse int",
		strings.Repeat("0", 101): "the maximum is 100",
	} {
		if _, err := Parse(expression, "Etc/UTC", "prod/a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", expression, err, want)
		}
	}
	for _, zone := range []string{
		"", "Local", "local", "localtime", "posixrules", "posix/Europe/Berlin", "right/UTC", "Europe/Atlantis", "CEST", "Europe//Berlin", "/etc/localtime", "../UTC",
		"Europe/../UTC", "-UTC", "Europe/Berlin/", "\u0395urope/Berlin", "Europe", "America/Argentina/ComodRivadaviaX", "UTC\n", "tzdata.zi", "+05:00",
	} {
		if _, err := Parse("@daily", zone, "prod/a"); err == nil || !strings.Contains(err.Error(), "IANA") {
			t.Errorf("time zone %q: %v", zone, err)
		}
	}
}

// TestZonesAreEmbedded checks that time zones are built into the program.
func TestZonesAreEmbedded(t *testing.T) {
	t.Setenv("ZONEINFO", t.TempDir())
	if parsed(t, "0 0 * * *", "Asia/Kathmandu").Newest(time.Date(2026, 5, 1, 18, 15, 0, 0, time.UTC)).Minute() != 15 {
		t.Error("Kathmandu is not 5:45 ahead")
	}
}

// TestHashedTimesAreStableAndSpread checks that the numbers that replace H never change, depend on the cluster, and are
// spread out.
func TestHashedTimesAreStableAndSpread(t *testing.T) {
	for key, want := range map[string]string{"prod/a": "16 21 * * THU", "prod/b": "0 22 * * THU", "dev/a": "37 19 * * THU"} {
		s, err := Parse("H  H * *\tTHU", "Etc/UTC", key)
		if err != nil || s.Cron() != want {
			t.Errorf("%s: %q, %v, want %q", key, s.Cron(), err, want)
		}
	}
	minutes, hours := map[string]int{}, map[string]int{}
	for i := range 6000 {
		s, err := Parse("H H * * *", "Etc/UTC", fmt.Sprintf("team-%d/etcd-%d", i%50, i/50))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(s.Cron())
		minutes[fields[0]]++
		hours[fields[1]]++
	}
	for number, n := range minutes {
		if value, err := strconv.Atoi(number); err != nil || value > 59 || n < 50 || n > 200 || len(minutes) != 60 {
			t.Errorf("minute %s: %d of 6000", number, n)
		}
	}
	for number, n := range hours {
		if value, err := strconv.Atoi(number); err != nil || value > 23 || n < 150 || n > 400 || len(hours) != 24 {
			t.Errorf("hour %s: %d of 6000", number, n)
		}
	}
}

// TestDaylightSaving checks that times that a time zone skips do not occur, and that repeated times occur twice, as in
// Kubernetes.
func TestDaylightSaving(t *testing.T) {
	for _, test := range []struct{ zone, expression, now, want string }{
		// In Berlin, clocks go from 2:00 to 3:00 at 1:00 UTC.
		{"Europe/Berlin", "30 2 * * *", "2026-03-29T12:00:00Z", "2026-03-28T01:30:00Z"},
		{"Europe/Berlin", "30 2 * * *", "2026-03-30T12:00:00Z", "2026-03-30T00:30:00Z"},
		{"Europe/Berlin", "0 * * * *", "2026-03-29T01:59:59Z", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "0 3 * * *", "2026-03-29T12:00:00Z", "2026-03-29T01:00:00Z"},
		// In Berlin, clocks go back from 3:00 to 2:00 at 1:00 UTC.
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T00:59:00Z", "2026-10-25T00:30:00Z"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T12:00:00Z", "2026-10-25T01:30:00Z"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-26T12:00:00Z", "2026-10-26T01:30:00Z"},
		{"Europe/Berlin", "@daily", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z"},
		// In New York, clocks go from 2:00 to 3:00 at 7:00 UTC, and back from 2:00 to 1:00 at 6:00 UTC.
		{"America/New_York", "30 2 * * *", "2026-03-08T23:00:00Z", "2026-03-07T07:30:00Z"},
		{"America/New_York", "30 2 * * *", "2026-03-09T23:00:00Z", "2026-03-09T06:30:00Z"},
		{"America/New_York", "30 1 * * *", "2026-11-01T05:59:00Z", "2026-11-01T05:30:00Z"},
		{"America/New_York", "30 1 * * *", "2026-11-01T23:00:00Z", "2026-11-01T06:30:00Z"},
		{"America/New_York", "*/20 * * * *", "2026-11-01T06:59:00Z", "2026-11-01T06:40:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		got := parsed(t, test.expression, test.zone).Newest(now)
		if got.Format(time.RFC3339) != test.want || got.Location() != time.UTC {
			t.Errorf("%q in %s at %s: %s, want %s", test.expression, test.zone, test.now, got, test.want)
		}
	}
}

func TestNewest(t *testing.T) {
	leap := parsed(t, "0 0 29 2 *", "Etc/UTC")
	for now, want := range map[time.Time]time.Time{
		time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC):    time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		time.Date(2024, 2, 28, 23, 59, 59, 9, time.UTC): {},
		time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC):     time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC):     {},
		time.Date(2099, 3, 1, 0, 0, 0, 0, time.UTC):     {}, // the next time is beyond the library's limit
	} {
		if got := leap.Newest(now); !got.Equal(want) {
			t.Errorf("at %s: %s, want %s", now, got, want)
		}
	}
	if got := (Schedule{}).Newest(time.Unix(0, 0)); !got.IsZero() || (Schedule{}).Cron() != "" {
		t.Error("the zero value happens")
	}
	// The zone and fractions of a second of the current time do not matter.
	at := time.Date(2026, 5, 1, 12, 0, 0, 1, time.FixedZone("", 3600))
	if got := parsed(t, "* * * * *", "Etc/UTC").Newest(at); !got.Equal(at.Truncate(time.Second)) {
		t.Error(got)
	}
}

// field returns a random field of an expression, with numbers from low to high.
func field(random *rand.Rand, low, high int) string {
	number := func(from, to int) int { return from + random.IntN(to-from+1) }
	first := number(low, high)
	switch random.IntN(6) {
	case 0:
		return strconv.Itoa(first)
	case 1:
		return fmt.Sprintf("*/%d", number(1, high))
	case 2:
		return fmt.Sprintf("%d-%d/%d", first, number(first, high), number(1, 5))
	case 3:
		return fmt.Sprintf("%d,%d", first, number(low, high))
	default:
		return "*"
	}
}

// TestEveryTimeIsFound checks, for weeks in which clocks change, that Newest returns each time until Kubernetes would
// start the next backup. The newest time never decreases.
func TestEveryTimeIsFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	starts := map[string][]time.Time{
		"Asia/Kathmandu":   {time.Date(2026, 2, 20, 0, 0, 0, 0, time.UTC)},
		"Etc/UTC":          {time.Date(2026, 2, 20, 0, 0, 0, 0, time.UTC)},
		"Europe/Berlin":    {time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 15, 0, 0, 0, 0, time.UTC)},
		"America/New_York": {time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC)},
	}
	for zone, begins := range starts {
		for range 20 {
			expression := strings.Join([]string{field(random, 0, 59), field(random, 0, 23), field(random, 1, 28), "*", field(random, 0, 6)}, " ")
			s := parsed(t, expression, zone)
			for _, begin := range begins {
				followed(t, s, zone, begin)
			}
		}
	}
}

// followed checks the newest times for three weeks, or for 200 scheduled times if these are reached earlier.
func followed(t *testing.T, s Schedule, zone string, begin time.Time) {
	t.Helper()
	for fires, n := s.after(begin), 0; n < 200 && fires.Sub(begin) < 21*24*time.Hour; n++ {
		following := s.after(fires)
		for _, now := range []time.Time{fires, fires.Add(time.Second), fires.Add(following.Sub(fires) / 2), following.Add(-1)} {
			if got := s.Newest(now); !got.Equal(fires) {
				t.Fatalf("%q in %s at %s: %s, want %s", s.Cron(), zone, now, got, fires)
			}
		}
		fires = following
	}
}

// TestNewestMatchesFields compares Newest with a search that tries every minute.
func TestNewestMatchesFields(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, zone := range []string{"Etc/UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"} {
		for range 200 {
			s := parsed(t, strings.Join([]string{field(random, 0, 59), field(random, 0, 23), "*", "*", field(random, 0, 6)}, " "), zone)
			now := time.Date(2026, time.Month(1+random.IntN(12)), 1+random.IntN(31), random.IntN(24), random.IntN(60), random.IntN(60), 0, time.UTC)
			want := now.Truncate(time.Minute)
			for !named(s.times, want) {
				want = want.Add(-time.Minute)
			}
			if got := s.Newest(now); !got.Equal(want) {
				t.Fatalf("%q in %s at %s: %s, want %s", s.Cron(), zone, now, got, want)
			}
		}
	}
}

// named reports whether the fields of a schedule, which must include every day of the month, match a minute.
func named(times *cron.SpecSchedule, at time.Time) bool {
	at = at.In(times.Location)
	has := func(field uint64, n int) bool { return field>>n&1 == 1 }
	return has(times.Minute, at.Minute()) && has(times.Hour, at.Hour()) && has(times.Dow, int(at.Weekday()))
}

// TestExpressionsMatchKubernetes checks that Parse accepts the same expressions as Kubernetes, except those that never
// occur.
func TestExpressionsMatchKubernetes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	words := []string{"*", "?", "0", "1", "7", "59", "60", "-", "/", ",", "mon", "JAN", "L", "W", "#", "x", "5-3", "*/7", "1/2", "-1", "+1", "99999999999999999999"}
	taken := 0
	for range 20000 {
		fields := make([]string, 5)
		for i := range fields {
			fields[i] = words[random.IntN(5)]
			if random.IntN(4) == 0 {
				fields[i] = words[random.IntN(len(words))] + words[random.IntN(len(words))]
			}
		}
		expression := strings.Join(fields, " ")
		_, err := Parse(expression, "Etc/UTC", "prod/a")
		_, theirs := cron.ParseStandard(expression)
		if (err == nil) != (theirs == nil) && (err == nil || !strings.Contains(err.Error(), "never matches")) {
			t.Fatalf("%q: %v, but Kubernetes returns %v", expression, err, theirs)
		}
		if err == nil {
			taken++
		}
	}
	if taken < 1000 {
		t.Errorf("only %d are accepted", taken)
	}
}

// TestHostileExpressionsAreHandledInTime checks that any expression of valid length is handled quickly.
func TestHostileExpressionsAreHandledInTime(t *testing.T) {
	now := time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, expression := range []string{
		", * * * *", "* , * * *", "* * , * *", "* * * , *", "* * * * ,", ", , , , ,", "0 0 31 2 *", "0 0 30-31 2 ?", "59 23 29 2 *", "59 23 31 1 *", "* * 1 1 *",
		"* * * * *", "0 0 1 1 *", "59 23 29 2 */7", "*/9223372036854775807 * * * *", "0-59/9223372036854775807 * * * *",
		strings.Repeat("*,", 46) + "* * * * *", strings.Repeat("1,", 46) + " * * * *", strings.Repeat("*", 100), strings.Repeat(" ", 100), strings.Repeat("H ", 50),
	} {
		begin := time.Now()
		s, err := Parse(expression, "America/New_York", "prod/a")
		s.Newest(now)
		if took := time.Since(begin); took > 50*time.Millisecond {
			t.Errorf("%q took %s (%v)", expression, took, err)
		}
	}
}

func BenchmarkNewest(b *testing.B) {
	now := time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, expression := range []string{"* * * * *", "H H * * *", "59 23 29 2 *", "59 23 31 1 *"} {
		b.Run(expression, func(b *testing.B) {
			for b.Loop() {
				s, err := Parse(expression, "Europe/Berlin", "prod/a")
				if err != nil {
					b.Fatal(err)
				}
				s.Newest(now)
			}
		})
	}
}

// TestPerDay checks that the number of scheduled times matches the fields and does not depend on the numbers that
// replace H.
func TestPerDay(t *testing.T) {
	for expression, want := range map[string]int{
		"H H * * *": 1, "H * * * *": 24, "@hourly": 24, "@weekly": 1, "* * * * *": 1440, "*/15 8-19 * * *": 48, "0,0 1,2 1 1 *": 2, "59 23 29 2 *": 1,
	} {
		s, err := Parse(expression, "Europe/Berlin", "ns/a")
		if err != nil || s.PerDay() != want {
			t.Errorf("%q: %d, %v, want %d", expression, s.PerDay(), err, want)
		}
	}
	if (Schedule{}).PerDay() != 0 {
		t.Error("it never matches")
	}
}
