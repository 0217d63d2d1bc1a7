package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// TestDefaultLogLevel checks that the default of --log-level is as documented in the help: nothing is logged to a
// terminal unless a level is set.
func TestDefaultLogLevel(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil || !isTerminal(terminal) {
		t.Skipf("no terminal to be had: %v", err)
	}
	defer terminal.Close()
	for _, test := range []struct {
		name, level string
		to          io.Writer
		want        []slog.Level
	}{
		{"a file", "", &bytes.Buffer{}, []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError}},
		{"a terminal", "", terminal, nil},
		{"a terminal, and a level is given", "warn", terminal, []slog.Level{slog.LevelWarn, slog.LevelError}},
	} {
		log, err := (&logFlags{level: test.level, format: "text"}).logger(streams{err: test.to})
		if err != nil {
			t.Fatal(err)
		}
		var got []slog.Level
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			if log.Enabled(t.Context(), level) {
				got = append(got, level)
			}
		}
		if len(got) != len(test.want) || len(got) > 0 && got[0] != test.want[0] {
			t.Errorf("%s logs %v, want %v", test.name, got, test.want)
		}
	}
	if usage := newRun(streams{}).Flags().Lookup("log-level").Usage; !strings.Contains(usage, "nothing on a terminal") {
		t.Errorf("got %s", usage)
	}
}
