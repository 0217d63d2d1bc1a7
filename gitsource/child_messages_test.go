package gitsource

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/pack"
	"quorate.dev/quorate/gitsource/remote"
)

// TestFetcherMessagesAreBounded checks that messages from the fetcher are limited in length, and that decoding a
// message uses at most a few times its length in memory, regardless of its content.
func TestFetcherMessagesAreBounded(t *testing.T) {
	o := Options{
		Location: "https://git.example.com/x.git",
		Transfer: remote.Limits{Pack: pack.Limits{ObjectBytes: 32 << 20}},
		Options:  manifests.Options{Limits: manifests.Limits{FileBytes: 1 << 20}},
	}
	bound := maxLine(o)
	if want := 3 << 20; bound > want {
		t.Errorf("a message may have %d bytes, want at most %d", bound, want)
	}
	many := func(start, again, end string) string {
		return start + strings.Repeat(again, (bound-len(start)-len(end))/len(again)) + end
	}
	for name, line := range map[string]string{
		"entries":                many(`{"Answer":{"Entries":[`, `{},`, `{}]}}`),
		"entries that are null":  many(`{"Answer":{"Entries":[`, `null,`, `null]}}`),
		"entries with a name":    many(`{"Answer":{"Entries":[`, `{"Name":"a"},`, `{"Name":"a"}]}}`),
		"entries as they are":    many(`{"Answer":{"Entries":[`, `{"Name":"a","Type":0},`, `{"Name":"a","Type":0}]}}`),
		"entries again":          many(`{"Answer":{`, `"Entries":[{},{},{}],`, `"Missing":true}}`),
		"kinds of an error":      many(`{"Failed":{"Kinds":[`, `true,`, `true]}}`),
		"kinds as numbers":       many(`{"Failed":{"Kinds":[`, `0,`, `0]}}`),
		"words of an error":      many(`{"Failed":{"Text":"`, `x`, `"}}`),
		"a file":                 many(`{"Answer":{"Content":"`, base64.StdEncoding.EncodeToString([]byte("xxx")), `"}}`),
		"a file as numbers":      many(`{"Answer":{"Content":[`, `0,`, `0]}}`),
		"an error about a file":  many(`{"Answer":{"Error":"`, `\u0000`, `"}}`),
		"a name":                 many(`{"Opened":{"Name":"`, `x`, `"}}`),
		"fields that do nothing": many(`{`, `"x":[],`, `"x":[]}`),
		"nested":                 many(`{"x":`, `[`, ``),
	} {
		r := &reading{asked: true, ended: make(chan struct{})}
		close(r.ended)
		c := conversation{ctx: t.Context(), options: o, reading: r}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := c.onMessage([]byte(line))
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) / uint64(len(line)); took > 8 {
			t.Errorf("%s: %d bytes took %d times as much memory (error %.100s)", name, len(line), took, fmt.Sprint(err))
		}
	}
}
