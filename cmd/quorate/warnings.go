package main

import (
	"fmt"
	"io"
	"sync"

	"quorate.dev/quorate/internal/printable"
)

// warnings prints each warning from the API server once. It implements rest.WarningHandler.
type warnings struct {
	w    io.Writer
	mu   sync.Mutex
	said map[string]bool
}

// mostWarnings is the maximum number of warnings to print. It is limited because printed warnings are remembered.
const mostWarnings = 1000

// miscellaneous is the code of warnings that clients should show.
const miscellaneous = 299

// HandleWarningHeader prints a warning. It may be called concurrently.
func (h *warnings) HandleWarningHeader(code int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if code != miscellaneous || text == "" || h.said[text] || len(h.said) == mostWarnings {
		return
	}
	if h.said == nil {
		h.said = map[string]bool{}
	}
	h.said[text] = true
	fmt.Fprintf(h.w, "warning from the API server: %s\n", printable.Line(text))
}
