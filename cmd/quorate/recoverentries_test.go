package main

import "testing"

// TestEntries checks that the noun is singular if the count is 1.
func TestEntries(t *testing.T) {
	for n, want := range map[uint64]string{1: "1 entry", 2: "2 entries"} {
		if got := entries(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
