package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBars checks that a terminal shows the progress of each step in bytes and percent, with the elapsed time, or the
// current activity if the length of a step is unknown. The test replaces values that vary: the speed and the times.
func TestBars(t *testing.T) {
	var shown bytes.Buffer
	t.Setenv("TERM", "dumb")
	tell, done := barsTo(&shown)
	tell("receive", 0, 4<<20)
	tell("receive", 1<<20, 4<<20)
	tell("receive", 4<<20, 4<<20)
	tell("receive", 5<<20, 4<<20) // the total was an estimate
	tell.Step("check every page")
	tell("store", 2<<20, 2<<20)
	done()
	got := shown.String()
	for unsteady, steady := range map[string]string{`[^ (]+ [kMGTPE]?B/s`: "SPEED", `\[[0-9dhms]+:[0-9dhms]+\]`: "[TIME:LEFT]", `\[[0-9dhms]+\]`: "[TIME]", `\r *\r`: "\r"} {
		got = regexp.MustCompile(unsteady).ReplaceAllString(got, steady)
	}
	var lines []string
	for line := range strings.SplitSeq(strings.NewReplacer("\r", "\n", "\n", "\n").Replace(got), "\n") {
		if line = strings.TrimRight(line, " "); line != "" && (len(lines) == 0 || lines[len(lines)-1] != line) {
			lines = append(lines, line)
		}
	}
	got = strings.Join(lines, "\n") + "\n"
	golden := filepath.Join("testdata", "bars.txt")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || got != string(want) {
		t.Errorf("%v, got:\n%s\nwant:\n%s", err, got, want)
	}
}

// TestNoBarsWithoutTerminal checks that nothing is shown if the output is not a terminal.
func TestNoBarsWithoutTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tell, done := bars(w)
	if tell != nil {
		tell("receive", 1, 2)
		t.Error("a pipe shows it")
	}
	tell.Step("check every page")
	done()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	if n, err := shown.ReadFrom(r); n != 0 || err != nil {
		t.Errorf("%q, %v", shown.String(), err)
	}
}
