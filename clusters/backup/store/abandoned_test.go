package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAbandonedUploadsAreRemoved checks that the next upload or deletion in a directory removes old files of killed
// uploads. Files of uploads that may still be in progress, and all other files, are kept.
func TestAbandonedUploadsAreRemoved(t *testing.T) {
	for name, change := range map[string]struct {
		do   func(b directory) error
		kept string
	}{
		"upload": {func(b directory) error { return b.Create(t.Context(), "ns/a/second", strings.NewReader("2")) },
			unfinished + "new first old second"},
		"deletion": {func(b directory) error { return b.Delete(t.Context(), "ns/a/first") }, unfinished + "new old"},
	} {
		t.Run(name, func(t *testing.T) { testAbandoned(t, change.do, change.kept) })
	}
}

func testAbandoned(t *testing.T, change func(b directory) error, want string) {
	t.Helper()
	root := t.TempDir()
	b := directory{root}
	if err := b.Create(t.Context(), "ns/a/first", strings.NewReader("1")); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{
		unfinished + "old": abandoned + time.Hour, unfinished + "new": abandoned - time.Hour, "old": abandoned + time.Hour,
	} {
		file := filepath.Join(root, "ns/a", name)
		if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := change(b); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(root, "ns/a"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
