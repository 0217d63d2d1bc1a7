package decide_test

import (
	"slices"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// TestLaterReread checks that damage remains known until the backups are read again.
func TestLaterReread(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	damaged := []string{"20260801t100000z"}
	before := &decide.Reread{At: at, Backups: 7, Damaged: damaged}
	for name, test := range map[string]struct {
		later decide.Reread
		want  []string
	}{
		"not listed":     {decide.Reread{Unread: "list: 503"}, damaged},
		"looked again":   {decide.Reread{Backups: 6}, nil},
		"one is unread":  {decide.Reread{Backups: 6, Unread: "403"}, nil},
		"none is stored": {decide.Reread{}, nil},
	} {
		test.later.At = at.Add(time.Hour)
		for _, got := range []*decide.Reread{decide.LaterReread(before, &test.later), decide.LaterReread(&test.later, before)} {
			if !got.At.Equal(test.later.At) || got.Unread != test.later.Unread || !slices.Equal(got.Damaged, test.want) {
				t.Errorf("%s: %+v, want %q damaged", name, got, test.want)
			}
		}
	}
	if decide.LaterReread(nil, before) != before || decide.LaterReread(before, nil) != before || decide.LaterReread(nil, nil) != nil {
		t.Error("one of none is not that one")
	}
}
