package decide_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain reduces garbage collection: the tests create millions of short-lived states, and by default the small heap
// would be collected all the time.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1600)
	}
	os.Exit(m.Run())
}
