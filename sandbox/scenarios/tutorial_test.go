package scenarios

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTutorial follows docs/tutorial.md verbatim, except for the name of its namespace, and compares the output
// with the page.
func TestTutorial(t *testing.T) {
	t.Parallel()
	s := theSandbox(t)
	steps := readTutorial(t)
	namespace := fmt.Sprintf("tutorial-%04x", rand.IntN(1<<16))
	file := filepath.Join(t.TempDir(), "tutorial.sh")
	if err := os.WriteFile(file, []byte(tutorialScript(steps, t.TempDir(), namespace)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.command("exec", "--", "kubectl", "delete", "namespace", namespace, "--ignore-not-found", "--wait=false")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary("sandbox"), "exec", "--name", s.name, "--", "bash", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	printed := strings.Split(strings.ReplaceAll(string(out), namespace, "tutorial"), tutorialMark)[1:]
	for i, step := range steps {
		if i >= len(printed) {
			t.Errorf("not reached: %s", step.command)
			break
		}
		if got, want := whatStays(printed[i]), whatStays(step.output); got != want {
			t.Errorf("%s\nprinted\n%s\nand docs/tutorial.md has\n%s", step.command, got, want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, stderr.String())
	}
}

// tutorialMark separates the outputs of two commands.
const tutorialMark = "@@@@\n"

type tutorialStep struct{ command, output string }

var tutorialBlock = regexp.MustCompile("(?s)```(sh|console)\n(.*?)```")

// readTutorial reads the commands of the page, each with its output, except the first block, which builds
// Quorate and starts a sandbox.
func readTutorial(t *testing.T) []tutorialStep {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root(), "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	var steps []tutorialStep
	for _, block := range tutorialBlock.FindAllStringSubmatch(string(page), -1)[1:] {
		if block[1] == "sh" {
			steps = append(steps, tutorialStep{command: block[2]})
			continue
		}
		for _, part := range strings.Split("\n"+block[2], "\n$ ")[1:] {
			end := 0
			if here := strings.Index(part, "<< 'EOF'\n"); here >= 0 {
				end = here + strings.Index(part[here:], "\nEOF") + len("\nEOF")
			} else if end = strings.Index(part, "\n"); end < 0 {
				end = len(part)
			}
			steps = append(steps, tutorialStep{command: part[:end], output: part[end:]})
		}
	}
	if len(steps) < 30 {
		t.Fatalf("only %d commands found", len(steps))
	}
	return steps
}

// tutorialScript returns the commands that a reader types. Passes are limited to this namespace, because other tests
// run clusters at the same time. Members get more time to respond, because the other tests keep the machine busy.
func tutorialScript(steps []tutorialStep, home, namespace string) string {
	script := &strings.Builder{}
	fmt.Fprintf(script, `export HOME=%[1]s GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=you GIT_AUTHOR_EMAIL=you@example.com GIT_COMMITTER_NAME=you GIT_COMMITTER_EMAIL=you@example.com
quorate() {
  case $1 in
    run | plan) %[2]s "$@" --namespace %[3]s %[4]s ;;
    status) %[2]s "$@" --namespace %[3]s --etcd-timeout 20s ;;
    *) %[2]s "$@" ;;
  esac
}
`, home, binary("quorate"), namespace, setting("etcd.timeout", "20s"))
	for _, step := range steps {
		command := strings.ReplaceAll(step.command, "tutorial", namespace)
		fmt.Fprintf(script, "code=$?; printf %q; (exit $code)\n%s\n", tutorialMark, command)
	}
	return script.String()
}

// changing matches output that differs between runs.
var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b[0-9a-f]{12,64}\b`), "ID"},
	{regexp.MustCompile(`https://[0-9.]+:\d+`), "URL"},
	{regexp.MustCompile(`\bdeclared by [0-9a-f]{7} \(\S+\)`), "declared by REVISION"},
	{regexp.MustCompile(`\b\d+Ki\b`), "SIZE"},
	{regexp.MustCompile(`\b(Leader|Voter)\b`), "ROLE"},
	{regexp.MustCompile(`\bcart-\d +Converged +\S+`), "LEADER Converged AGE"},
	{regexp.MustCompile(`(?m)^    (applied|deleted) .*\n`), ""}, // the actions of the last pass
	{regexp.MustCompile(` from \S+ namespace`), ""},             // which kubectl does not always print
	{regexp.MustCompile(` +`), " "},
}

func whatStays(printed string) string {
	for _, c := range changing {
		printed = c.pattern.ReplaceAllString(printed, c.instead)
	}
	return strings.TrimSpace(printed)
}
