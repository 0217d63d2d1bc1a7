package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"

	"quorate.dev/quorate/clusters/backup"
)

// bars returns a function that shows the progress of each step, in bytes and time, on a terminal, and a function that
// ends the last bar. If w is not a terminal, the first function is nil.
func bars(w io.Writer) (backup.Progress, func()) {
	if !isTerminal(w) {
		return nil, func() {}
	}
	return barsTo(w)
}

func barsTo(w io.Writer) (backup.Progress, func()) {
	var mu sync.Mutex
	var bar *progressbar.ProgressBar
	var step string
	end := func() {
		if bar != nil {
			bar.Exit()
			fmt.Fprintln(w)
		}
	}
	tell := func(name string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if name != step {
			end()
			bar, step = newBar(w, name, total), name
			bar.RenderBlank()
		}
		if done > total && total > 0 {
			bar.ChangeMax64(done) // the total was an estimate
		}
		bar.Set64(done)
	}
	return tell, func() {
		mu.Lock()
		defer mu.Unlock()
		end()
	}
}

// newBar starts a progress bar, or a spinner if the total is unknown.
func newBar(w io.Writer, name string, total int64) *progressbar.ProgressBar {
	options := []progressbar.Option{
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(fmt.Sprintf("%-24s", name)),
		progressbar.OptionShowTotalBytes(true), progressbar.OptionSetWidth(20),
		progressbar.OptionUseANSICodes(os.Getenv("TERM") != "dumb"), progressbar.OptionSetElapsedTime(true),
		progressbar.OptionShowElapsedTimeOnFinish(), progressbar.OptionSetPredictTime(total > 0),
	}
	if total == 0 {
		return progressbar.NewOptions64(-1, options...)
	}
	return progressbar.NewOptions64(total, append(options, progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount())...)
}
