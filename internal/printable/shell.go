package printable

import (
	"regexp"
	"strings"
)

// shellSafe matches text that a shell does not interpret.
var shellSafe = regexp.MustCompile(`^[-A-Za-z0-9_./:=,@%+]+$`)

// ShellWord returns text as one word of a shell command, quoted if necessary, with unprintable characters escaped.
func ShellWord(text string) string {
	if shellSafe.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(Line(text), "'", `'\''`) + "'"
}
