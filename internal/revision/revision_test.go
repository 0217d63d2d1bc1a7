package revision

import (
	"math/rand/v2"
	"strings"
	"testing"
)

const full = "4f2a0000000000000000000000000000000000bc"

func TestParse(t *testing.T) {
	for text, want := range map[string]Revision{
		"directory":                          {},
		"sha1:" + full:                       {hash: full},
		"main@sha1:" + full:                  {ref: "main", hash: full},
		"main@sha1:1":                        {ref: "main", hash: "1"},
		"v1.2.0@sha1:" + full:                {ref: "v1.2.0", hash: full},
		"refs/pull/420/head@sha1:" + full:    {ref: "refs/pull/420/head", hash: full},
		"user@host@sha1:" + full:             {ref: "user@host", hash: full},
		"sha1@sha1:" + full:                  {ref: "sha1", hash: full},
		"directory@sha1:" + full:             {ref: "directory", hash: full},
		"ветка\u00a0\xff@sha1:" + full:       {ref: "ветка\u00a0\xff", hash: full},
		"main@sha1:" + full + full[:24]:      {ref: "main", hash: full + full[:24]},
		strings.Repeat("x", 999) + "@sha1:1": {ref: strings.Repeat("x", 999), hash: "1"},
	} {
		got, ok := Parse(text)
		if !ok || got != want || got.String() != text || got.Ref() != want.ref || got.Hash() != want.hash {
			t.Errorf("%q is parsed as %+v: %v", text, got, ok)
		}
		if got.IsFull() != (len(want.hash) == 40) {
			t.Errorf("%q is full: %v", text, got.IsFull())
		}
	}
}

func TestParseRejectsHostileText(t *testing.T) {
	for _, text := range []string{
		"", " ", "@", "sha1:", "@sha1:", "main@sha1:", "main", "main@", full, "main@" + full, "@sha1:" + full, "Directory",
		"directory ", "main@sha1:" + full + " ", " main@sha1:" + full, "ma in@sha1:" + full, "main@sha1:" + full + "\n",
		"main\n@sha1:" + full, "main@sha1:" + strings.ToUpper(full), "main@sha1:nonsense", "main@sha1:-1", "main@sha1:0x1",
		"main@sha1:sha1:" + full, "a:b@sha1:" + full, "a@sha1:1@sha1:" + full, "a@sha1:1 b@sha1:2", "mainsha1:" + full,
		"main@sha256:" + full, "main@SHA1:" + full, "main@sha1: " + full, "main@sha1:٣", "main@sha1:\xff", "main@sha1:1\x00",
	} {
		if got, ok := Parse(text); ok || got != (Revision{}) {
			t.Errorf("%q is parsed as %+v", text, got)
		}
	}
}

func TestIsCommit(t *testing.T) {
	for text, want := range map[string]bool{
		full: true, "sha1:" + full: true, "main@sha1:" + full: true, "main@" + full: true,
		"": false, "directory": false, full[1:]: false, full + "0": false, "main@sha1:1": false, "@" + full: false,
		"a:b@" + full: false, "a b@" + full: false, strings.ToUpper(full): false, "sha1:sha1:" + full: false, full + "\n": false,
	} {
		if IsCommit(text) != want {
			t.Errorf("%q is a commit: %v", text, !want)
		}
	}
}

func TestSameCommit(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"main@sha1:1", "main@sha1:1", true},
		{"main@sha1:1", "release@sha1:1", true},
		{"sha1:1", "main@sha1:1", true},
		{full, "main@sha1:" + full, true},
		{"main@" + full, "release@sha1:" + full, true},
		{"sha1:" + full, "main@" + full, true},
		{"main@sha1:1", "main@sha1:2", false},
		{"main@sha1:1", "main@sha1:10", false},
		{"directory", "directory", true},
		{"directory", "directory@sha1:1", false},
		{"directory", "", false},
		{"nonsense", "nonsense", true},
		{"", "main@sha1:1", false},
		{"main@sha1:" + full, "a:b@sha1:" + full, false},
	} {
		if SameCommit(test.a, test.b) != test.want || SameCommit(test.b, test.a) != test.want {
			t.Errorf("%q and %q are the same commit: %v", test.a, test.b, !test.want)
		}
	}
}

func TestShort(t *testing.T) {
	for hash, want := range map[string]string{"": "", "1": "1", full[:7]: full[:7], full: full[:7]} {
		if got := Of("main", hash).Short(); got != want {
			t.Errorf("%q is shortened to %q", hash, got)
		}
	}
}

// TestRoundTrip checks that formatting and parsing a revision returns the same revision, and that parsing and
// formatting text returns the same text. It uses random combinations of the relevant pieces.
func TestRoundTrip(t *testing.T) {
	pieces := []string{"main", "@", "sha1:", ":", " ", full, "1", "f", "directory", "/", "\n", "é", "\xff", "A", ""}
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() string {
		var text strings.Builder
		for range random.IntN(6) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		return text.String()
	}
	parsed := 0
	for range 200_000 {
		text := draw()
		if r, ok := Parse(text); ok {
			parsed++
			if r.String() != text || Of(r.Ref(), r.Hash()) != r || !SameCommit(text, r.String()) {
				t.Fatalf("%q is parsed as %+v, whose text is %q", text, r, r)
			}
			if r.IsFull() && !IsCommit(text) {
				t.Fatalf("%q is not accepted as a commit", text)
			}
		}
		if ref := draw(); !strings.ContainsAny(ref, ": \n") {
			r := Of(ref, full)
			if got, ok := Parse(r.String()); !ok || got != r {
				t.Fatalf("%+v is parsed as %+v: %v", r, got, ok)
			}
		}
	}
	if parsed < 1000 {
		t.Errorf("only %d texts are revisions", parsed)
	}
}
