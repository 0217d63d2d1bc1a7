package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/reconcile/report"
)

// leastInterval is the minimum interval of status --watch.
const leastInterval = 2 * time.Second

// watchFlags specify whether, and at what interval, status keeps watching.
type watchFlags struct {
	on       bool
	interval time.Duration
}

func (f *watchFlags) add(c *cobra.Command) {
	c.Flags().BoolVarP(&f.on, "watch", "w", false,
		"until interrupted, print the table again after each change; in a pipe, print only the changed lines")
	c.Flags().DurationVar(&f.interval, "interval", 5*time.Second,
		"with --watch, how long to wait between checks, at least 2s")
}

// check rejects invalid combinations.
func (f *watchFlags) check(output string) error {
	switch {
	case f.on && output != "text":
		return usageError{fmt.Errorf("--watch shows the table; remove --output %s", output)}
	case f.on && f.interval < leastInterval:
		return usageError{fmt.Errorf("--interval %s: must be at least %s", f.interval, leastInterval)}
	}
	return nil
}

// watch shows the results of look repeatedly until ctx is done, and does not return an error for that. If the first
// call of look fails without finding a cluster, watch returns the error. Later errors are printed whenever they change.
func (f *watchFlags) watch(
	ctx context.Context, std streams, look func(context.Context) (report.Report, error),
	pause func(context.Context, time.Duration),
) error {
	show := shower(std.out)
	said := ""
	for first := true; ctx.Err() == nil; first = false {
		rep, unseen := look(ctx)
		now := ""
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was stopped
		case unseen != nil && first && len(rep.Clusters) == 0:
			return unseen
		case unseen != nil:
			now = strings.ReplaceAll(unseen.Error(), "\n", "; ")
		}
		if rep.Unobserved = unseen != nil; unseen == nil || len(rep.Clusters) > 0 {
			cleared, err := show(rep)
			if err != nil {
				return err
			}
			if cleared { // this also cleared the last error
				said = ""
			}
		}
		if now != said && now != "" {
			fmt.Fprintln(std.err, "quorate:", style(std.err).Wrap(now, len("quorate: "), 4))
		}
		said = now
		pause(ctx, f.interval)
	}
	return nil
}

// shower returns a function that shows successive reports. On a terminal, each report replaces the screen; otherwise,
// only changes are printed.
func shower(w io.Writer) func(report.Report) (cleared bool, err error) {
	if !isTerminal(w) {
		var following report.Following
		return func(rep report.Report) (bool, error) { return false, following.Changes(w, rep) }
	}
	var before []byte
	return func(rep report.Report) (bool, error) {
		var b bytes.Buffer
		if err := report.Table(&b, rep, styleUpTo(w, widestTable)); err != nil || bytes.Equal(b.Bytes(), before) {
			return false, err
		}
		before = b.Bytes()
		_, err := w.Write(append([]byte(clearScreen), before...))
		return true, err
	}
}

// clearScreen clears a terminal and moves the cursor to the top left corner.
const clearScreen = "\x1b[H\x1b[2J"

// pauseFor waits for the given time or until ctx is done.
func pauseFor(ctx context.Context, pause time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	<-ctx.Done()
}
