package result_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/visible"
	"quorate.dev/quorate/visible/visibletest"
)

func soundReread() result.Reread {
	return result.Reread{
		Format: result.RereadFormat, At: slot, Backups: 7, Read: 2, Bytes: 77856, Oldest: slot.Add(-time.Hour),
		Damaged: []string{"20261122t180000z of 15082e1bb141d752", "20261122t180000z of 00082e1bb141d752", "20261120t180000z"},
	}
}

// manyDamaged returns n backup names, the newest first.
func manyDamaged(n int) (names []string) {
	for i := range n {
		names = append(names, slot.Add(-time.Duration(i)*time.Hour).Format("20060102t150405z")+" of 15082e1bb141d752")
	}
	return names
}

// TestReread checks that a written result can be read, and is one line, regardless of the number of damaged backups and
// of the store's response.
func TestReread(t *testing.T) {
	for name, text := range visibletest.Hostile {
		r := soundReread()
		r.Unread, r.Damaged = strings.Repeat(text, 20), manyDamaged(500)
		line, err := r.Encode()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := result.ParseReread(string(line))
		if err != nil || len(line) > result.MaxBytes || len(got.Damaged) != result.MaxDamaged || got.More != 500-result.MaxDamaged {
			t.Errorf("%s: %d bytes: %+v, %v", name, len(line), got, err)
		}
		if one, ended := strings.CutSuffix(string(line), "\n"); !ended || visible.Line(one) != one {
			t.Errorf("%s: %q", name, line)
		}
	}
	for _, r := range []result.Reread{soundReread(), {Format: result.RereadFormat, At: slot}} {
		line, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := result.ParseReread(string(line)); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, want %+v: %v", got, r, err)
		}
	}
}

// refusedRereads returns texts that a reread could not have written, by their problem.
func refusedRereads(t testing.TB) map[string]string {
	line, err := soundReread().Encode()
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		"nothing": "", "null": "null", "empty": "{}", "cut": string(line[:80]), "two": string(line) + string(line), "too long": string(line) + strings.Repeat(" ", 4096),
	}
	for field, values := range map[string][]any{
		"format": {nil, "x", result.DrilledFormat}, "at": {nil, "x", "1999-01-01T00:00:00Z"}, "backups": {-1, 1 << 40, 0, 1.5}, "read": {-1, "1"}, "bytes": {-1, 1 << 60},
		"oldest": {"x", "1999-01-01T00:00:00Z"}, "more": {-1, 1}, "unread": {strings.Repeat("x", 501), "a\nb"}, "other": {1},
		"damaged": {"x", []string{"x"}, []string{"../20261122t180000z"}, []string{"20261122t180000z of "}, []string{"20261122t180000z of all"}, []string{"20261122t180000z of 15082e1bb141d752 "}, []string{"20261322t180000z"}, []string{"20261122t180000z", "20261122t180000z"},
			[]string{"20261120t180000z", "20261122t180000z"}, manyDamaged(17)},
	} {
		for _, value := range values {
			refused[fmt.Sprintf("%s %.20v", field, value)] = with(t, line, field, value)
		}
	}
	return refused
}

// TestRereadRefused checks that text from a pod's status, which tenants can write, is accepted only if a reread could
// have written it.
func TestRereadRefused(t *testing.T) {
	for name, text := range refusedRereads(t) {
		if r, err := result.ParseReread(text); !errors.Is(err, result.ErrReread) || visible.Line(err.Error()) != err.Error() {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// FuzzReread checks that accepted text is written again unchanged, within Kubernetes' size limit.
func FuzzReread(f *testing.F) {
	for _, text := range refusedRereads(f) {
		f.Add(text)
	}
	line, err := soundReread().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(line))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := result.ParseReread(text)
		if err != nil {
			return
		}
		line, err := r.Encode()
		if err != nil || len(line) > result.MaxBytes {
			t.Fatalf("%q: %s, %v", text, line, err)
		}
		if again, err := result.ParseReread(string(line)); err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v, then %+v, %v", r, again, err)
		}
	})
}

// TestRereadOfOddNames checks that backups with arbitrary times, which anyone with write access to the store can
// create, do not suppress the result.
func TestRereadOfOddNames(t *testing.T) {
	r := soundReread()
	r.Oldest = time.Unix(0, 0)
	r.Damaged = []string{"19700101t000000z", "20261122t180000z", "no name"}
	line, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if said := string(line); strings.Contains(said, "1970") || strings.Contains(said, "no name") || !strings.Contains(said, "20261122t180000z") {
		t.Errorf("it says %s", said)
	}
}
