package objects

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFilledFormEqualsYAML checks that a filled-in form equals the directly encoded file.
func TestFilledFormEqualsYAML(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"a", "b-0", "https://", "http", ":", "2380", ".svc", "=", ",", "true", "null", "no", "-", "0x1", "1e3", "existing", "new", "2026-01-01", strings.Repeat("long-", 30)}
	odd := append(pieces, " ", "#", "'", "\"", "é", "\n", "\t", "~", "[", "{}", "&", "*", "!", "|", "%", "@", "<<", strings.Repeat("long ", 30))
	of := func(pieces []string) (text string) {
		for range 1 + random.IntN(4) {
			text += pieces[random.IntN(len(pieces))]
		}
		return text
	}
	piece := func() string { return of(odd) }
	for range 20_000 {
		options := map[string]any{
			"data-dir": dataDir, "name-of": piece(), "logger": piece() + piece(), "log-outputs": []string{piece(), "name: x"}, "quota": random.IntN(9),
			"peer": map[string]any{"name": piece(), "allowed-cn": []string{"initial-cluster: y"}}, "text": piece() + "\nname: \"\"\n" + piece(),
		}
		own := map[string]string{}
		for _, key := range ownKeys {
			own[key] = "member-" + of(pieces) + "0"
		}
		own[ownKeys[random.IntN(len(ownKeys))]] = [2]string{of(pieces), piece()}[random.IntN(2)]
		want, err := encodeFile(options, own)
		if err != nil {
			t.Fatal(err)
		}
		blank, err := formOf(options)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := blank.filledIn(own); err != nil || got != want {
			t.Fatalf("%v: %q\n%s\nwant\n%s", err, own, got, want)
		}
	}
}
