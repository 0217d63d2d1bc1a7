package simulate_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain reduces garbage collection. The tests create millions of short-lived states, and by default the small heap
// would be collected constantly.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1600)
	}
	os.Exit(m.Run())
}
