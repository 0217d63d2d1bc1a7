package main

import "testing"

// TestEntries: the count 1 has a singular noun.
func TestEntries(t *testing.T) {
	for n, want := range map[uint64]string{1: "1 entry", 2: "2 entries"} {
		if got := entries(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
