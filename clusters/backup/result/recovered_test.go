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

func soundRecovered() result.Recovered {
	return result.Recovered{
		Format: result.RecoveredFormat, LostClusterID: "15082e1bb141d752", LostMemberID: "9e737febb6b99eee", Term: 7, Index: 18391,
		Revision: 18204, NewRevision: 1000018204, StartedAt: slot, FinishedAt: slot.Add(time.Minute),
		ClusterID: "3b8e8c5a7cf0d2a1", MemberID: "8211f1d0f64f3269",
	}
}

// TestRecovered checks that an encoded recovery result is a single line and can be parsed.
func TestRecovered(t *testing.T) {
	r := soundRecovered()
	r.Suspect = true
	line, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if one, ended := strings.CutSuffix(string(line), "\n"); !ended || printable.Line(one) != one {
		t.Errorf("%q", line)
	}
	if got, err := result.ParseRecovered(string(line)); err != nil || got != r {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRecoveredRejectsInvalidText checks that text from a data directory is accepted only if a recovery could have
// written it, because others can write to the directory.
func TestRecoveredRejectsInvalidText(t *testing.T) {
	line, err := soundRecovered().Encode()
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{"nothing": "", "null": "null", "empty": "{}", "cut": string(line[:200]), "two": string(line) + string(line)}
	for name, text := range printabletest.Hostile {
		refused[name], refused[name+" as a field"] = text, with(t, line, text+"\x1b", 1)
	}
	for field, values := range map[string][]any{
		"format":        {nil, "", result.RestoredFormat},
		"lostClusterID": {nil, "", "0000000000000000", "3b8e8c5a7cf0d2a1", "x"},
		"lostMemberID":  {nil, "9E737FEBB6B99EEE"},
		"term":          {nil, 0, -1},
		"index":         {nil, 0, "1"},
		"revision":      {nil, 0, -1},
		"newRevision":   {nil, 18203, json.Number("9223372036854775808")},
		"startedAt":     {nil, "yesterday", "0001-01-01T00:00:00Z"},
		"finishedAt":    {nil, "2026-01-01T00:00:00Z"},
		"clusterID":     {nil, "0000000000000000"},
		"memberID":      {nil, "8211f1d0f64f3269\n"},
		"restored":      {true},
	} {
		for _, value := range values {
			refused[fmt.Sprintf("%s %v", field, value)] = with(t, line, field, value)
		}
	}
	for name, text := range refused {
		got, err := result.ParseRecovered(text)
		if !errors.Is(err, result.ErrRecovered) || got != (result.Recovered{}) || err.Error() != printable.Line(err.Error()) {
			t.Errorf("%q: %v: %+v", name, err, got)
		}
	}
	lost := soundRecovered()
	lost.ClusterID = lost.LostClusterID
	if line, err := lost.Encode(); err == nil {
		t.Errorf("%s", line)
	}
}
