package simulate_test

import (
	"os"
	"testing"

	"github.com/cockroachdb/datadriven"
)

func TestReplayTmp(t *testing.T) {
	dir := os.Getenv("ROADS")
	if dir == "" {
		t.Skip()
	}
	datadriven.Walk(t, dir, func(t *testing.T, path string) { tellRoad(t, path) })
}
