package backup

import "io"

// counter counts and reports the bytes written to it.
type counter struct {
	tell        Progress
	name        string
	done, total int64
}

func (p Progress) counter(name string, total int64) io.Writer {
	return &counter{tell: p, name: name, total: total}
}

func (c *counter) Write(b []byte) (int, error) {
	c.done += int64(len(b))
	if c.tell != nil {
		c.tell(c.name, c.done, c.total)
	}
	return len(b), nil
}

// Step reports the start of a step that has no measurable progress.
func (p Progress) Step(name string) {
	if p != nil {
		p(name, 0, 0)
	}
}
