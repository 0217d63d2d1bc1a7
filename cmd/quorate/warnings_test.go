package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestWarningsArePrintedOnceAndBounded checks that each warning is printed once, and that the number of remembered
// warnings is limited.
func TestWarningsArePrintedOnceAndBounded(t *testing.T) {
	var said strings.Builder
	h := &warnings{w: &said}
	for n := range 2 * mostWarnings {
		for range 2 {
			h.HandleWarningHeader(miscellaneous, "-", fmt.Sprintf("number %d", n))
		}
	}
	if lines := strings.Count(said.String(), "\n"); lines != mostWarnings || len(h.said) != mostWarnings {
		t.Errorf("%d lines, %d are remembered", lines, len(h.said))
	}
}
