package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// Exit codes of quorate.
const (
	exitDone         = 0
	exitError        = 1
	exitChanges      = 2
	exitInvalid      = 3
	exitBlocked      = 4
	exitLocked       = 5
	exitNotConverged = 6
	exitKilled       = -1
)

// result is the result of a finished run of quorate.
type result struct {
	args   string
	code   int
	stdout string
	stderr string
	report report
	took   time.Duration
	// peak is the largest resident set size of the process or of a descendant, in bytes. Only benchmarks measure it,
	// because reading it repeatedly takes CPU time.
	peak int64
}

// report is the JSON report of run and plan.
type report struct {
	Revision string          `json:"revision"`
	Digest   string          `json:"digest"`
	Clusters []clusterReport `json:"clusters"`
	Problems []struct {
		File    string `json:"file"`
		Line    int    `json:"line"`
		Message string `json:"message"`
	} `json:"problems"`
	Error string `json:"error"`
}

type clusterReport struct {
	Kubernetes string `json:"kubernetes"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Decision   struct {
		Rule    string         `json:"rule"`
		Verdict string         `json:"verdict"`
		Action  map[string]any `json:"action"`
		Message string         `json:"message"`
	} `json:"decision"`
	Outcome  *struct{ Changed bool } `json:"outcome"`
	Road     *road                   `json:"road"`
	Warnings []string                `json:"warnings"`
	Error    string                  `json:"error"`
}

func (r result) String() string {
	said := r.report.String()
	if said == "" { // stdout is not a report, or has no known fields
		said = end(r.stdout)
	}
	return fmt.Sprintf("quorate %s\nexit code %d after %s\nstdout:\n%s\nstderr:\n%s", r.args, r.code, r.took.Round(time.Millisecond), said, end(r.stderr))
}

// String returns the decision for each cluster and its result, one line each, and the errors.
func (r report) String() string {
	var text strings.Builder
	for _, c := range r.Clusters {
		fmt.Fprintf(&text, "%s: %s by %s: %s", c.Name, c.Decision.Verdict, c.Decision.Rule, c.Decision.Message)
		if c.Error != "" {
			fmt.Fprintf(&text, "; error: %s", c.Error)
		}
		text.WriteByte('\n')
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&text, "%s:%d: %s\n", p.File, p.Line, p.Message)
	}
	if r.Error != "" {
		fmt.Fprintf(&text, "error: %s\n", r.Error)
	}
	return text.String()
}

// end returns the last lines of text.
func end(text string) string {
	const most = 40
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= most {
		return text
	}
	return "…\n" + strings.Join(lines[len(lines)-most:], "")
}

// cluster returns the report's entry for the given cluster, or an empty entry.
func (r result) cluster(name string) clusterReport {
	for _, c := range r.report.Clusters {
		if c.Name == name {
			return c
		}
	}
	return clusterReport{}
}

// process is a running quorate command.
type process struct {
	w       *world
	command *exec.Cmd
	stdout  buffer
	stderr  buffer
	started time.Time
	peak    func() int64
}

// vantage specifies where quorate runs, and how it reaches the API server.
type vantage struct {
	inside bool
	proxy  *faultproxy.Proxy
}

var (
	outside = vantage{}
	inside  = vantage{inside: true}
)

// through returns a vantage like outside, but with a proxy between quorate and the API server.
func through(proxy *faultproxy.Proxy) vantage { return vantage{proxy: proxy} }

// start starts quorate. args begin with the command. The flags for the source and the namespace are added.
func (w *world) start(v vantage, args ...string) *process {
	w.t.Helper()
	full := append([]string{binary("quorate")}, withOneConfig(args)...)
	full = append(full, "--namespace", w.namespace)
	if slices.Contains([]string{"run", "plan"}, args[0]) {
		full = append(full, "--source", w.source)
		if !slices.Contains(args, "--loop") { // a loop does not print a report
			full = append(full, "--output", "json")
		}
	}
	switch {
	case v.inside:
		full = append(full, "--etcd-access", "direct")
		full = append([]string{binary("sandbox"), "exec", "--name", w.name, "--"}, full...)
	case v.proxy != nil:
		full = append(full, "--kubeconfig", w.kubeconfigOf(v.proxy))
	default:
		full = append(full, "--kubeconfig", w.kubeconfig)
	}
	p := &process{w: w, command: exec.Command(full[0], full[1:]...), started: time.Now()}
	p.command.Env = append(os.Environ(), "NO_COLOR=1")
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	if err := p.command.Start(); err != nil {
		w.t.Fatal(err)
	}
	if _, is := w.t.(*testing.B); is {
		p.peak = watchPeak(p.command.Process.Pid)
	}
	w.t.Cleanup(p.kill) // a process, in particular a paused one, must not outlive a failed test
	return p
}

func (p *process) kill()   { _ = p.command.Process.Kill() }
func (p *process) pause()  { _ = p.command.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() { _ = p.command.Process.Signal(syscall.SIGCONT) }

// wait waits for the process to end.
func (p *process) wait() result {
	p.w.t.Helper()
	deadline := time.AfterFunc(2*passLimit, p.kill)
	defer deadline.Stop()
	err := p.command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.w.t.Error(err)
	}
	r := result{
		args: strings.Join(p.command.Args[1:], " "),
		code: p.command.ProcessState.ExitCode(), stdout: p.stdout.String(), stderr: p.stderr.String(),
		took: time.Since(p.started),
	}
	if p.peak != nil {
		r.peak = p.peak()
	}
	if strings.HasPrefix(r.stdout, "{") {
		if err := json.Unmarshal([]byte(r.stdout), &r.report); err != nil {
			p.w.t.Errorf("decode the report: %v\n%s", err, r.stdout)
		}
	}
	p.w.remember(r)
	return r
}

func (w *world) remember(r result) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.runs = append(w.runs, r)
}

// runFrom runs quorate until it exits.
func (w *world) runFrom(v vantage, args ...string) result {
	w.t.Helper()
	return w.start(v, args...).wait()
}

// run runs quorate from outside, for one pass by default.
func (w *world) run(args ...string) result {
	w.t.Helper()
	args = append([]string{"run"}, args...)
	if !slices.Contains(args, "--until-converged") {
		args = append(args, patientWithEtcd)
	}
	return w.runFrom(outside, args...)
}

// convergeFrom runs passes until nothing is left to do, and fails the test on timeout.
func (w *world) convergeFrom(v vantage, args ...string) result {
	w.t.Helper()
	args = append([]string{"run", "--until-converged", "--timeout", patience.String(), setting("kubernetes.leaseDuration", "3s")}, args...)
	r := w.runFrom(v, args...)
	if r.code != exitDone {
		w.t.Fatalf("did not converge:\n%s", r)
	}
	return r
}

func (w *world) converge(args ...string) result {
	w.t.Helper()
	return w.convergeFrom(outside, args...)
}

// requireCode fails unless quorate exited with the given code.
func (r result) requireCode(t testing.TB, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d:\n%s", r.code, code, r)
	}
	return r
}

// requireRule fails unless the given rule made the decision for the cluster.
func (r result) requireRule(t testing.TB, cluster, rule string) result {
	t.Helper()
	if got := r.cluster(cluster).Decision.Rule; got != rule {
		t.Fatalf("rule %q decided for %s, want %q:\n%s", got, cluster, rule, r)
	}
	return r
}

// says reports whether either output stream contains the text.
func (r result) says(text string) bool { return strings.Contains(r.stdout+r.stderr, text) }

// offline runs a quorate command without a kubeconfig, unless args name one.
func offline(t testing.TB, args ...string) result {
	t.Helper()
	return offlineWith(t, nil, args...)
}

// offlineWith is like offline, but sets additional environment variables.
func offlineWith(t testing.TB, environment []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, binary("quorate"), withOneConfig(args)...)
	command.Env = append(append(os.Environ(), "NO_COLOR=1", "KUBECONFIG=/nonexistent"), environment...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{args: strings.Join(args, " "), code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}
