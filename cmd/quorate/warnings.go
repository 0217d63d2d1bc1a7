package main

import (
	"fmt"
	"io"
	"sync"

	"quorate.dev/quorate/visible"
)

// warnings prints what an API server warns of, each warning once. It implements the interface that
// client-go asks for.
type warnings struct {
	w    io.Writer
	mu   sync.Mutex
	said map[string]bool
}

// mostWarnings are printed at most: one that differs each time would be remembered without end.
const mostWarnings = 1000

// miscellaneous is the code of warnings that are meant to be shown.
const miscellaneous = 299

// HandleWarningHeader prints a warning; requests are made at once.
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
	fmt.Fprintf(h.w, "warning of the API server: %s\n", visible.Line(text))
}
