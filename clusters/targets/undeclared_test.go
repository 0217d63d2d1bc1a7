package targets

import "testing"

// TestHold checks that the message about a held removal explains how to confirm the removal. It names the revision to
// confirm or, if that is unknown, refers to the report of the run.
func TestHold(t *testing.T) {
	const said = "main@sha1:def no longer declares it"
	for _, test := range []struct {
		orphan orphan
		want   string
	}{
		{orphan{said: said, since: "main@sha1:def"}, "--confirm-removals=main@sha1:def"},
		{orphan{said: said, revision: "main@sha1:123"}, "--confirm-removals=main@sha1:123"},
		{orphan{said: said}, "--confirm-removals, with the revision in the report of the run,"},
	} {
		held := Target{}.hold(&test.orphan)
		want := said + ": it is kept as last applied unless " + test.want + " confirms the removal"
		if held.Held != said || len(held.Warnings) != 1 || held.Warnings[0] != want {
			t.Errorf("got %q: %q", held.Held, held.Warnings)
		}
	}
}
