package result_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/printable/printabletest"
)

func soundDrilled() result.Drilled {
	return result.Drilled{
		Format: result.DrilledFormat, Slot: slot, Data: "20261122t180000z-18204-9c4bbfd4.db.zst.age", ClusterID: "15082e1bb141d752", Revision: 18204,
		Bytes: 77856, SHA256: strings.Repeat("0f", 32), EtcdVersion: "3.6.16", StartedAt: slot.Add(time.Hour), FinishedAt: slot.Add(2 * time.Hour),
		FetchSeconds: 1.5, RestoreSeconds: 0.25, StartSeconds: 2,
	}
}

// TestDrilled checks that an encoded drill result is a single line and can be parsed.
func TestDrilled(t *testing.T) {
	r := soundDrilled()
	r.Uncompared = strings.Repeat("why\n", 400)
	line, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(line)
	if one, ended := strings.CutSuffix(text, "\n"); !ended || printable.Line(one) != one || len(text) > result.MaxBytes {
		t.Errorf("%q", text)
	}
	got, err := result.ParseDrilled(text)
	if err != nil || got.Seconds() != 3.75 || !strings.HasPrefix(got.Uncompared, "why") {
		t.Errorf("%+v, %v", got, err)
	}
	if got.Uncompared, r.Uncompared = "", ""; got != r {
		t.Errorf("%+v, want %+v", got, r)
	}
}

// TestDrilledRejectsInvalidText checks that text from a pod's status is accepted only if a drill could have written it,
// because tenants can change the status.
func TestDrilledRejectsInvalidText(t *testing.T) {
	line, err := soundDrilled().Encode()
	if err != nil {
		t.Fatal(err)
	}
	restored, err := soundRestored().Encode()
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		"nothing": "", "null": "null", "a list": "[]", "empty": "{}", "cut": string(line[:200]), "two": string(line) + string(line),
		"too long": string(line) + strings.Repeat(" ", 4096), "of a restore": string(restored),
	}
	for field, values := range map[string][]any{
		"format": {nil, "x"}, "slot": {nil, "x", "1999-01-01T00:00:00Z"}, "data": {nil, "../x"}, "clusterID": {nil, "x"}, "revision": {-1},
		"bytes": {nil, 0}, "sha256": {nil, "x"}, "etcdVersion": {nil, "x", "3.6", "v3.6.16", "3.6.16\n"}, "fetchSeconds": {-1, 1e9}, "restoreSeconds": {-1, "1"},
		"startSeconds": {-0.5, 1e300}, "uncompared": {strings.Repeat("x", 501), "a\nb"}, "more": {1},
	} {
		for _, value := range values {
			refused[fmt.Sprintf("%s %.20v", field, value)] = with(t, line, field, value)
		}
	}
	for name, text := range printabletest.Hostile {
		if printable.Line(text) != text {
			refused["uncompared "+name] = with(t, line, "uncompared", text)
		}
	}
	for name, text := range refused {
		if r, err := result.ParseDrilled(text); !errors.Is(err, result.ErrDrilled) || printable.Line(err.Error()) != err.Error() {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	bad := soundDrilled()
	if bad.StartSeconds = math.NaN(); func() error { _, err := bad.Encode(); return err }() == nil {
		t.Error("no number of seconds is written")
	}
}
