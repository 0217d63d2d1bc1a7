package scenarios

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// failures reads the output of package testing and records the first error of each failed test, so that all errors can
// be shown together at the end of a long log.
type failures struct {
	// source returns a line of a test file, which shows whether a message is an error or only a log message.
	source func(file string, line int) string
	// at maps the indentation of a heading to the test to which the messages below it belong.
	at     map[int]string
	first  map[string]string
	failed []string
}

var (
	heading = regexp.MustCompile(`^( *)(?:=== (?:RUN|NAME|CONT) +|--- (?:FAIL|PASS|SKIP): )(\S+)`)
	message = regexp.MustCompile(`^( +)(\w+_test\.go):(\d+): (.*)`)
)

// line processes a line of the log. With -v, a message follows "=== NAME". Without -v, it follows "--- FAIL", which is
// indented by four columns less.
func (f *failures) line(text string) {
	if found := heading.FindStringSubmatch(text); found != nil {
		f.at[len(found[1])] = found[2]
		if strings.Contains(text, "--- FAIL") {
			f.failed = append(f.failed, found[2])
		}
		return
	}
	found := message.FindStringSubmatch(text)
	if found == nil {
		return
	}
	number, _ := strconv.Atoi(found[3])
	test := f.at[len(found[1])-4]
	if f.first[test] == "" && !strings.Contains(f.source(found[2], number), ".Log") {
		f.first[test] = fmt.Sprintf("%s:%s: %s", found[2], found[3], found[4])
	}
}

// lines returns one line for each failed test. It omits tests that failed only because of a subtest.
func (f *failures) lines() []string {
	var lines []string
	for _, test := range f.failed {
		below := slices.ContainsFunc(f.failed, func(other string) bool { return strings.HasPrefix(other, test+"/") })
		switch why := f.first[test]; {
		case why != "":
			lines = append(lines, fmt.Sprintf("failed %s: %.300s", test, why))
		case !below:
			lines = append(lines, fmt.Sprintf("failed %s", test))
		}
	}
	return lines
}

func newFailures(source func(string, int) string) *failures {
	return &failures{source: source, at: map[int]string{}, first: map[string]string{}}
}

// watchFailures reads everything that is printed to standard output from now on and passes it through. The returned
// function prints the failures after the rest of the output.
func watchFailures() (report func(), err error) {
	out := os.Stdout
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watch for failures: %w", err)
	}
	f, done := newFailures(sourceLine), make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewReader(io.TeeReader(read, out))
		for {
			text, err := lines.ReadString('\n')
			f.line(strings.TrimSuffix(text, "\n"))
			if err != nil {
				return
			}
		}
	}()
	os.Stdout = write
	return func() {
		os.Stdout = out
		_ = write.Close()
		<-done
		for _, line := range f.lines() {
			fmt.Fprintln(out, line)
		}
	}, nil
}

// sourceLine reads a line of a file of this package. Tests run in the package's directory.
func sourceLine(file string, line int) string {
	text, err := os.ReadFile(file)
	lines := strings.Split(string(text), "\n")
	if err != nil || line < 1 || line > len(lines) {
		return ""
	}
	return lines[line-1]
}

func TestFailuresAreToldInTheEnd(t *testing.T) {
	source := func(_ string, line int) string {
		return map[int]string{1: `t.Logf("as of now")`, 2: `t.Errorf("wrong")`}[line]
	}
	want := []string{"failed TestA: a_test.go:2: wrong", "failed TestA/b: a_test.go:2: wrong too", "failed TestC/d"}
	for name, log := range map[string]string{
		"short": `
--- FAIL: TestA (0.00s)
    a_test.go:1: as of now
    a_test.go:2: wrong
        and why
    a_test.go:2: wrong again
    --- FAIL: TestA/b (0.00s)
        a_test.go:2: wrong too
--- FAIL: TestC (0.00s)
    --- FAIL: TestC/d (0.00s)
`,
		"verbose": `
=== RUN   TestA
    a_test.go:1: as of now
    a_test.go:2: wrong
=== RUN   TestA/b
    a_test.go:2: wrong too
=== NAME  TestA
    a_test.go:2: wrong again
--- FAIL: TestA (0.00s)
    --- FAIL: TestA/b (0.00s)
=== RUN   TestP
    a_test.go:2: not a failure in the end
--- PASS: TestP (0.00s)
--- FAIL: TestC (0.00s)
    --- FAIL: TestC/d (0.00s)
`,
	} {
		f := newFailures(source)
		for line := range strings.Lines(log) {
			f.line(strings.TrimSuffix(line, "\n"))
		}
		if got := f.lines(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
