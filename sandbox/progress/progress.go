// Package progress shows progress to users: on a terminal, as a line that is updated, and otherwise as plain lines.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Progress writes to one stream. The zero value is silent.
type Progress struct {
	out  io.Writer
	live bool // out is a terminal
}

// To writes progress to file.
func To(file *os.File) Progress {
	return Progress{out: file, live: term.IsTerminal(int(file.Fd()))}
}

// slow is the minimum expected duration of operations that are announced if the output is not a terminal.
const slow = 3 * time.Second

// Do calls f. It shows doing while f is running, and done if f succeeds. about is the expected duration of f, or 0 if
// it is unknown.
func (p Progress) Do(doing, done string, about time.Duration, f func() error) error {
	if p.out == nil {
		return f()
	}
	began := time.Now()
	stop := p.announce(doing, about)
	err := f()
	stop()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s (%s)\n", done, Round(time.Since(began)))
	return nil
}

// Say prints a line.
func (p Progress) Say(fact string) {
	if p.out != nil {
		fmt.Fprintln(p.out, fact)
	}
}

func (p Progress) announce(doing string, about time.Duration) (stop func()) {
	hint := ""
	if about > 0 {
		hint = fmt.Sprintf(", about %s", Round(about))
	}
	if !p.live {
		if about >= slow {
			fmt.Fprintf(p.out, "%s%s\n", doing, hint)
		}
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		began, tick := time.Now(), time.NewTicker(100*time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				fmt.Fprint(p.out, "\r\x1b[K")
				return
			case <-tick.C:
				fmt.Fprintf(p.out, "\r\x1b[K%s … %s%s", doing, Round(time.Since(began)), hint)
			}
		}
	}()
	return func() { close(end); <-ended }
}

// Round rounds a duration for display.
func Round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(10 * time.Millisecond)
	}
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
