package simulate_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain reduces garbage collection: millions of short-lived states are decided here, and by default the tiny heap
// would be collected constantly.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1600)
	}
	os.Exit(m.Run())
}
