// Package boundedtext keeps the beginning or the end of a program's output, however long it is.
package boundedtext

import "sync"

// size is the number of bytes that are kept.
const size = 4 << 10

// Head keeps the beginning of what is written to it. The zero value is ready for use, and it is safe for concurrent
// use.
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

// String returns the beginning.
func (h *Head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.text)
}

// Tail keeps the end of what is written to it. The zero value is ready for use, and it is safe for concurrent use.
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

// String returns the end.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
