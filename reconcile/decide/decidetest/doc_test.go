package decidetest_test

import (
	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

//go:embed doc.go
var account string

// TestDocDescribesStoryLanguage checks that doc.go describes each directive and each word in all stories and paths.
func TestDocDescribesStoryLanguage(t *testing.T) {
	for _, pattern := range []string{"../../../testdata/decide/*.txt", "../../../testdata/converge/*.txt"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files are %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range directivesIn(string(text)) {
				for _, word := range unknown(line) {
					t.Errorf("%s: %s: the account in doc.go has no %q", filepath.Base(file), line, word)
				}
			}
		}
	}
	if words := unknown("set a-1 pods=Ready"); len(words) != 1 {
		t.Errorf("an unused word is accepted: %q", words)
	}
}

// directivesIn returns the lines between two outputs.
func directivesIn(text string) []string {
	var directives []string
	output := false
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case line == "----":
			output = true
		case line == "":
			output = false
		case !output && line[0] != '#' && !isYAML.MatchString(line):
			directives = append(directives, line)
		}
	}
	return directives
}

// isYAML matches the lines of a state in YAML.
var isYAML = regexp.MustCompile(`^\w+:`)

// unknown returns the words of a directive that doc.go does not list for it.
func unknown(line string) []string {
	cmd, args, err := datadriven.ParseLine(line)
	if err != nil {
		return []string{line}
	}
	told := strings.Join(regexp.MustCompile(`(?m)^//\t`+regexp.QuoteMeta(cmd)+`\b.*`).FindAllString(account, -1), "\n")
	if told == "" {
		return []string{cmd}
	}
	if cmd == "person" {
		told = account
	}
	var words []string
	for _, arg := range args {
		word := arg.Key
		if isName.MatchString(word) {
			continue
		}
		if !regexp.MustCompile(`[\s|]` + regexp.QuoteMeta(word) + `($|[\s|=])`).MatchString(told + "\n") {
			words = append(words, word)
		}
	}
	return words
}

// isName matches arguments that are not words: the name of a cluster, replica, Job or rule, and numbers.
var isName = regexp.MustCompile(`^([a-z]|[a-z]-\d+|job-gen\d+|\+?\d[\dhms]*|[A-Z]\w+)$`)
