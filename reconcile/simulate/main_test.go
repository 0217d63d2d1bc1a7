package simulate_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets garbage be: millions of states are decided here, each of which is gone in a moment, and by default the
// heap, which is tiny, would be collected all the time.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1600)
	}
	os.Exit(m.Run())
}
