// Package boundedtext keeps a bounded part of a program's output: its beginning or its end.
package boundedtext

import "sync"

// size is the maximum number of bytes kept.
const size = 4 << 10

// Head keeps the beginning of the text written to it. The zero value is ready to use. Head is safe for concurrent use.
type Head struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer. It never fails.
func (h *Head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, p[:min(len(p), size-len(h.text))]...)
	return len(p), nil
}

// String returns the beginning of the text.
func (h *Head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.text)
}

// Tail keeps the end of the text written to it. The zero value is ready to use. Tail is safe for concurrent use.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-size):]...)
	t.text = append(t.text[:0], t.text[max(0, len(t.text)-size):]...)
	return len(p), nil
}

// String returns the end of the text.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
