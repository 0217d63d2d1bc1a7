package result_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/printable/printabletest"
)

var slot = time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)

func sound() result.Result {
	return result.Result{
		Format: result.Format, Slot: slot, Data: "20261122t180000z-18204-9c4bbfd4.db.zst.age", ClusterID: "15082e1bb141d752",
		Revision: 18204, Bytes: 77856, SHA256: strings.Repeat("0f", 32), StartedAt: slot.Add(200 * time.Millisecond), FinishedAt: slot.Add(1900 * time.Millisecond),
	}
}

// TestRoundTrip checks that an encoded result can be parsed, whatever reason members give for a missing proof.
func TestRoundTrip(t *testing.T) {
	reasons := map[string]string{"none": "", "plain": "1 of 3 voters hold the same data; a-2: no response within 30s", "long": strings.Repeat("ä\"", 4000)}
	for name, text := range printabletest.Hostile {
		reasons[name] = text
	}
	for name, reason := range reasons {
		r := sound()
		r.Unproven, r.Suspect = reason, reason != ""
		line, err := r.Encode()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := string(line)
		if one, ended := strings.CutSuffix(text, "\n"); !ended || printable.Line(one) != one || len(text) > result.MaxBytes {
			t.Errorf("%s: %d bytes: %q", name, len(text), text)
		}
		got, err := result.ParseResult(text)
		if err != nil || len(got.Unproven) > 500 || (got.Unproven == "") != (reason == "") {
			t.Errorf("%s: %v: %+v", name, err, got)
		}
		if again, err := got.Encode(); err != nil || string(again) != text {
			t.Errorf("%s: once more it is %s, %v", name, again, err)
		}
		got.Unproven = r.Unproven
		if got != r {
			t.Errorf("%s: got %+v, want %+v", name, got, r)
		}
	}
}

// TestStoreDataNamesAreValid checks that the names that the store creates for data are valid in a result.
func TestStoreDataNamesAreValid(t *testing.T) {
	for _, compression := range []string{"", store.Zstd} {
		for _, encryption := range []string{"", store.Age} {
			m := store.Manifest{Slot: slot, Compression: compression, Encryption: encryption, Snapshot: store.Snapshot{}}
			r := sound()
			r.Data = m.NewDataName()
			if _, err := r.Encode(); err != nil {
				t.Errorf("%s: %v", r.Data, err)
			}
		}
	}
}

// TestInvalidResultIsNotEncoded checks that Encode does not write a result that parsing would reject.
func TestInvalidResultIsNotEncoded(t *testing.T) {
	for name, spoil := range map[string]func(*result.Result){
		"no data":     func(r *result.Result) { r.Data = "" },
		"no slot":     func(r *result.Result) { r.Slot = time.Time{} },
		"no ID":       func(r *result.Result) { r.ClusterID = "" },
		"no size":     func(r *result.Result) { r.Bytes = 0 },
		"no checksum": func(r *result.Result) { r.SHA256 = "" },
		"a far year":  func(r *result.Result) { r.FinishedAt = r.FinishedAt.AddDate(8000, 0, 0) },
	} {
		r := sound()
		spoil(&r)
		if line, err := r.Encode(); err == nil {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// TestResultRejectsInvalidText checks that text from a pod's status is accepted only if a backup could have written it,
// because tenants can change the status. It also checks that errors do not contain control sequences.
func TestResultRejectsInvalidText(t *testing.T) {
	with := func(field string, value any) string {
		line, err := sound().Encode()
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]any{}
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatal(err)
		}
		if fields[field] = value; value == nil {
			delete(fields, field)
		}
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if _, err := result.ParseResult(with("suspect", true)); err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		"nothing": "", "no JSON": "error: etcd did not answer", "null": "null", "a list": "[]", "empty": "{}", "cut": with("suspect", true)[:300],
		"two of them": with("suspect", true) + with("suspect", true), "more": with("suspect", true) + "x", "too long": with("suspect", true) + strings.Repeat(" ", 4096),
		"deep": strings.Repeat("[", 4096),
	}
	for name, text := range printabletest.Hostile {
		refused[name], refused[name+" as a reason"], refused[name+" as a field"] = text, with("unproven", text+"\x1b"), with(text+"\x1b", 1)
	}
	for field, values := range map[string][]any{
		"format":     {nil, "", "quorate.dev/backup-result/v2", "QUORATE.DEV/backup-result/v1", 1},
		"slot":       {nil, "", "now", "0001-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00", "2026-11-22T18:00:00.5Z", "2026-11-22T18:00:01Z", "2026-11-22T18:00:00+01:00", 1},
		"data":       {nil, "", "../20261122t180000z-18204-9c4bbfd4.db", "20261122t180000z-18204-9c4bbfd4.db\n", "20261122t180000z-18204-9c4bbfd4.exe", "20261122t180001z-18204-9c4bbfd4.db", []string{}},
		"clusterID":  {nil, "", "15082e1bb141d75", "15082E1BB141D752", "15082e1bb141d752\n", "../../../../../.."},
		"revision":   {-1, 1.5, "1", json.Number("9223372036854775808"), json.Number("1e99")},
		"bytes":      {nil, 0, -1, int64(1)<<50 + 1, "1"},
		"sha256":     {nil, "", strings.Repeat("0", 63), strings.Repeat("g", 64), strings.Repeat("0", 64) + "\n"},
		"startedAt":  {nil, "", "0001-01-01T00:00:00Z", "yesterday", 0},
		"finishedAt": {nil, "", "1999-01-01T00:00:00Z", "+10000-01-01T00:00:00Z"},
		"suspect":    {"no", 0},
		"unproven":   {strings.Repeat("x", 501), "\x1b[31m", "a\nb", "::error::x", "##vso[x]", 1},
		"verified":   {true},
		"":           {""},
	} {
		for _, value := range values {
			refused[fmt.Sprintf("%s %v", field, value)] = with(field, value)
		}
	}
	for name, text := range refused {
		got, err := result.ParseResult(text)
		if !errors.Is(err, result.ErrResult) || got != (result.Result{}) {
			t.Errorf("%q: %s: %v: %+v", name, text, err, got)
			continue
		}
		if said := err.Error(); said != printable.Line(said) {
			t.Errorf("%q: it is shown as %.200q", name, said)
		}
	}
}

// FuzzParseResult checks that accepted text can be parsed, encoded and parsed again without changing its meaning.
func FuzzParseResult(f *testing.F) {
	line, err := sound().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(line))
	f.Add(`{"format":"quorate.dev/backup-result/v1","Format":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := result.ParseResult(text)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if got, err := result.ParseResult(string(again)); err != nil || got != r {
			t.Fatalf("%+v, then %+v, %v", r, got, err)
		}
	})
}
