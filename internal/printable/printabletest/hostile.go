// Package printabletest provides hostile texts, and checks whether printed output is safe.
package printabletest

import (
	"strings"
	"unicode/utf8"

	"quorate.dev/quorate/internal/printable"
)

// Mark is part of each hostile text, so output that contains the text must also contain Mark.
const Mark = "harmless"

// Hostile maps intended effects to hostile texts.
var Hostile = map[string]string{
	"colors":                  "\x1b[31m" + Mark + "\x1b[0m",
	"a window title":          "\x1b]0;owned\a" + Mark,
	"a link":                  "\x1b]8;;https://evil.example.com\x1b\\" + Mark + "\x1b]8;;\x1b\\",
	"C1 controls":             "\u009b31m" + Mark,
	"an overwritten line":     "bad\r" + Mark,
	"backspaces":              "bad\b\b\b" + Mark,
	"a text direction":        "\u202e" + Mark + "\u2066",
	"zero-width characters":   "har\u200bm\ufeff " + Mark + "\u2060",
	"invisible letters":       Mark + "\u115f\u1160\u3164\uffa0\u17b4\u17b5",
	"invisible marks":         Mark + "\u00ad\u034f\u061c",
	"variation selectors":     Mark + "\u180b\u180f\ufe00\ufe0f\U000e0100\U000e01ef",
	"tags":                    Mark + "\U000e0001\U000e0041\U000e007f",
	"a line separator":        Mark + "\u2028::error::x",
	"an obsolete command":     "::set-env name=PATH::/evil " + Mark,
	"a command after spaces":  "  \t::add-mask::" + Mark,
	"a command on a line":     Mark + "\n::stop-commands::x\n",
	"a command after a break": Mark + " " + strings.Repeat("x", 70) + "\n\n::error title=x::" + strings.Repeat("y", 70),
	"a GitHub command, v1":    Mark + " ##[set-env name=PATH]/evil",
	"an Azure command":        Mark + " ##vso[task.setvariable variable=PATH]/evil",
	"a command after hashes":  Mark + " ####vso[task.complete result=Succeeded]",
	"a TeamCity command":      "##teamcity[buildStatus status='SUCCESS'] " + Mark,
	"a GitLab section":        Mark + "\x1b[0Ksection_start:0:x\r\x1b[0K",
	"a table":                 "| " + Mark + " | <img src=x onerror=alert(1)> | ![](https://evil.example.com/x.png) |",
	"a very long line":        Mark + strings.Repeat("x", 1<<17),
	"very many lines":         Mark + strings.Repeat("\n", 1<<17),
	"invalid UTF-8":           "\xff\xfe" + Mark + "\xc3",
	"NUL":                     Mark + "\x00",
	"a log line":              Mark + "\ntime=2026-01-01T00:00:00Z level=INFO msg=acted cluster=a/one",
	"a report line":           Mark + "\na/one  Done   Converged",
	"the end of a string":     Mark + `"} , {"x":"`,
}

// Unfit returns the problem with printed output: it contains text that a terminal or CI system would interpret or not
// show, or Mark is missing. It returns "" if the output is safe.
func Unfit(printed string) string {
	switch {
	case !strings.Contains(printed, Mark):
		return "it does not contain the mark"
	case !utf8.ValidString(printed):
		return "it is not valid UTF-8"
	case strings.Contains(printed, "##"):
		return "it contains ##"
	}
	for line := range strings.Lines(printed) {
		line = strings.TrimSuffix(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case !printable.Is(line):
			return "it contains an invisible character"
		case strings.HasPrefix(trimmed, "::"):
			return "a line starts with ::"
		case strings.HasPrefix(line, "time=2026-01-01"), strings.HasPrefix(line, "a/one"):
			return "it contains a forged line"
		}
	}
	return ""
}

// Long reports whether a line of human-readable output is too long.
func Long(printed string) bool {
	for line := range strings.Lines(printed) {
		if len(line) > printable.Longest+1<<10 {
			return true
		}
	}
	return false
}
