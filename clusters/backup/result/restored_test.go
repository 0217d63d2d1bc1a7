package result_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/printable/printabletest"
)

func soundRestored() result.Restored {
	return result.Restored{
		Format: result.RestoredFormat, Slot: slot, Data: "20261122t180000z-18204-9c4bbfd4.db.zst.age", SourceClusterID: "15082e1bb141d752",
		Revision: 18204, NewRevision: 1000018204, Bytes: 77856, SHA256: strings.Repeat("0f", 32), StartedAt: slot.Add(time.Hour), FinishedAt: slot.Add(2 * time.Hour),
		ClusterID: "3b8e8c5a7cf0d2a1", MemberID: "8211f1d0f64f3269",
	}
}

func soundMark() result.Mark {
	return result.Mark{
		Format: result.MarkFormat, Restored: soundRestored(),
		Asked: result.Asked{From: "s3://backups/etcd", Cluster: "prod/a", Name: "a-0", PeerURL: "https://a-0.a.prod.svc:2380", InitialCluster: "a-0=https://a-0.a.prod.svc:2380", Token: "prod-a-x", RevisionBump: 1},
	}
}

// with returns line with one field changed, or removed if value is nil.
func with(t testing.TB, line []byte, field string, value any) string {
	t.Helper()
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

// TestRestored checks that an encoded restore result is a single line and can be parsed.
func TestRestored(t *testing.T) {
	r := soundRestored()
	r.Suspect = true
	line, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(line)
	if one, ended := strings.CutSuffix(text, "\n"); !ended || printable.Line(one) != one || len(text) > result.MaxBytes {
		t.Errorf("%q", text)
	}
	if got, err := result.ParseRestored(text); err != nil || got != r {
		t.Errorf("%+v, %v", got, err)
	}
	m := soundMark()
	if line, err = m.Encode(); err != nil {
		t.Fatal(err)
	}
	if got, err := result.ParseMark(string(line)); err != nil || got != m {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRestoredRejectsInvalidText checks that text from a pod's status or a volume is accepted only if a restore could
// have written exactly that text, because tenants can change both.
func TestRestoredRejectsInvalidText(t *testing.T) {
	line, err := soundRestored().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := result.ParseRestored(with(t, line, "suspect", true)); err != nil {
		t.Fatal(err)
	}
	backup, err := sound().Encode()
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		"nothing": "", "null": "null", "a list": "[]", "empty": "{}", "cut": string(line[:200]), "two": string(line) + string(line), "more": string(line) + "x",
		"too long": string(line) + strings.Repeat(" ", 4096), "of a backup": string(backup),
	}
	for name, text := range printabletest.Hostile {
		refused[name], refused[name+" as a field"] = text, with(t, line, text+"\x1b", 1)
	}
	for field, values := range map[string][]any{
		"format":          {nil, "", result.Format, "quorate.dev/restore-result/v2", 1},
		"slot":            {nil, "now", "0001-01-01T00:00:00Z", "2026-11-22T18:00:00.5Z", "2026-11-22T18:00:01Z"},
		"data":            {nil, "", "../20261122t180000z-18204-9c4bbfd4.db", "20261122t180001z-18204-9c4bbfd4.db"},
		"sourceClusterID": {nil, "", "15082E1BB141D752", "15082e1bb141d752\n"},
		"revision":        {-1, 1.5, "1"},
		"newRevision":     {nil, -1, 18203, json.Number("9223372036854775808")},
		"bytes":           {nil, 0, -1},
		"sha256":          {nil, "", strings.Repeat("g", 64)},
		"startedAt":       {nil, "yesterday", "0001-01-01T00:00:00Z"},
		"finishedAt":      {nil, "+10000-01-01T00:00:00Z"},
		"suspect":         {"no"},
		"clusterID":       {nil, "", "0000000000000000", "3B8E8C5A7CF0D2A1", "x"},
		"memberID":        {nil, "", "0000000000000000", "8211f1d0f64f3269\n"},
		"unproven":        {"x"},
	} {
		for _, value := range values {
			refused[fmt.Sprintf("%s %v", field, value)] = with(t, line, field, value)
		}
	}
	for name, text := range refused {
		got, err := result.ParseRestored(text)
		if !errors.Is(err, result.ErrRestored) || got != (result.Restored{}) || err.Error() != printable.Line(err.Error()) {
			t.Errorf("%q: %v: %+v", name, err, got)
		}
	}
}

func TestIncompleteMarkIsRejected(t *testing.T) {
	line, err := soundMark().Encode()
	if err != nil {
		t.Fatal(err)
	}
	asked := func(field string, value any) string {
		var m struct {
			Asked json.RawMessage `json:"asked"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		return with(t, line, "asked", json.RawMessage(with(t, m.Asked, field, value)))
	}
	refused := []string{"", "{}", string(line[:len(line)/2]), string(line) + "{}", with(t, line, "format", "quorate.dev/restored/v2"), with(t, line, "more", 1),
		with(t, line, "restored", nil), with(t, line, "asked", nil), asked("more", 1), asked("revisionBump", -1)}
	for _, field := range []string{"from", "cluster", "name", "peerURL", "initialCluster", "token"} {
		refused = append(refused, asked(field, nil))
	}
	for _, text := range refused {
		if got, err := result.ParseMark(text); !errors.Is(err, result.ErrMark) || got != (result.Mark{}) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestInvalidRestoredIsNotEncoded checks that Encode does not write a result that parsing would reject.
func TestInvalidRestoredIsNotEncoded(t *testing.T) {
	for name, spoil := range map[string]func(*result.Restored){
		"no data":     func(r *result.Restored) { r.Data = "" },
		"no ID":       func(r *result.Restored) { r.MemberID = "" },
		"an overflow": func(r *result.Restored) { r.NewRevision = -1 },
		"not of a store": func(r *result.Restored) {
			*r = result.Restored{NewRevision: 1, ClusterID: r.ClusterID, MemberID: r.MemberID}
		},
	} {
		r := soundRestored()
		spoil(&r)
		if line, err := r.Encode(); err == nil {
			t.Errorf("%s: %s", name, line)
		}
		if line, err := (result.Mark{Asked: soundMark().Asked, Restored: r}).Encode(); err == nil {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// FuzzParseRestored checks that accepted text can be parsed, encoded and parsed again without changing its meaning.
func FuzzParseRestored(f *testing.F) {
	line, err := soundRestored().Encode()
	if err != nil {
		f.Fatal(err)
	}
	mark, err := soundMark().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(line))
	f.Add(string(mark))
	f.Add(`{"format":"quorate.dev/restore-result/v1","Format":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := result.ParseRestored(text); err == nil {
			again, err := r.Encode()
			if err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if got, err := result.ParseRestored(string(again)); err != nil || got != r {
				t.Fatalf("%+v, then %+v, %v", r, got, err)
			}
		}
		if m, err := result.ParseMark(text); err == nil {
			again, err := m.Encode()
			if err != nil {
				return // escapes have made the text too long
			}
			if got, err := result.ParseMark(string(again)); err != nil || got != m {
				t.Fatalf("%+v, then %+v, %v", m, got, err)
			}
		}
	})
}
