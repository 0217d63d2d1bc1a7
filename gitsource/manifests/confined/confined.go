// Package confined runs part of this program in a separate process, started from the same binary, so that this part
// ends regardless of its input. The process has limits on memory, stack and time, and is killed at a deadline. It
// cannot open files or sockets, start programs or reach other processes; it asks this process for everything that it
// needs. Each task runs in a new process, so nothing is left for the next task.
//
// A process that needs files or the network can access only the given files, and the network only if allowed: see
// Reach.
package confined

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"quorate.dev/quorate/internal/boundedtext"
)

// Limits are the limits of one process.
type Limits struct {
	// Memory is the number of bytes that the process may use in addition to the program itself. CPU limits its
	// processor time.
	Memory int64
	CPU    time.Duration
	// LineBytes limits one message of the child.
	LineBytes int
	// FileBytes limits one file that the child writes.
	FileBytes int64
}

// Exceeded is an error that names the limit that a task exceeds, as in "needs more than 1m0s of CPU time", and how to
// raise it. Retrying does not help.
type Exceeded string

func (e Exceeded) Error() string { return string(e) }

// Run starts the child called name, sends it the task, and calls hear for each line from the child until hear returns
// done. If the answer of hear is not nil, it is sent to the child. The error is an Exceeded, an error returned by hear,
// the cause of the context's end, or an error that reports why the process could not run.
func Run(ctx context.Context, name string, work any, limits Limits, hear Hear) error {
	return runChild(ctx, kind{name: name, environment: []string{}, dir: "/"}, work, limits, Reach{}, hear)
}

// RunReaching is like Run, for a child served by ServeReaching. The child has the given environment and the working
// directory of this process.
func RunReaching(
	ctx context.Context, name string, work any, limits Limits, reach Reach, environment []string, hear Hear,
) error {
	return runChild(ctx, kind{name: name, reaching: true, environment: append([]string{}, environment...)}, work,
		limits, reach, hear)
}

// Hear handles a line from a child. If the answer is not nil, it is sent to the child.
type Hear = func(line []byte) (answer any, done bool, err error)

// kind specifies how to start a child.
type kind struct {
	name        string
	environment []string
	dir         string
	// reaching is set by RunReaching. The limits of such a child are raised by different flags.
	reaching bool
}

func runChild(ctx context.Context, k kind, work any, limits Limits, reach Reach, hear Hear) error {
	encoded, err := json.Marshal(work)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	p, err := start(running, k)
	if err != nil {
		return fmt.Errorf("start the confined process: %w", err)
	}
	told := p.converse(task{Limits: limits, Reach: reach, Task: encoded}, hear)
	if !errors.Is(told, errGone) {
		stop() // the child may still be busy
	}
	ended := p.command.Wait()
	switch {
	case !errors.Is(told, errGone):
		return told
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return p.explain(ended, limits, k.reaching)
	}
}

// process is a running child.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	// words is the beginning of the child's error output. Only the runtime writes there, if the child crashes.
	words boundedtext.Head
}

func start(ctx context.Context, k kind) (*process, error) {
	program, err := self()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.CommandContext(ctx, program)}
	p.command.Args, p.command.Env, p.command.Dir = []string{k.name}, k.environment, k.dir
	p.command.Stderr = &p.words
	p.command.WaitDelay = time.Second
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = p.command.StdoutPipe(); err != nil {
		return nil, err
	}
	return p, p.command.Start()
}

// errGone is returned if the child ended before it was done.
var errGone = errors.New("the process has ended")

// converse sends the child its task and answers its questions until it is done. It returns errGone if the child ended
// too early.
func (p *process) converse(t task, hear Hear) error {
	defer p.in.Close()
	if err := send(p.in, t); err != nil {
		return errGone
	}
	lines := bufio.NewScanner(p.out)
	lines.Buffer(nil, t.Limits.LineBytes)
	for lines.Scan() {
		answer, done, err := hear(lines.Bytes())
		if done || err != nil {
			return err
		}
		if answer == nil {
			continue
		}
		if err := send(p.in, answer); err != nil {
			return errGone
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("the process sent more than %d bytes in one message: %w", t.Limits.LineBytes, lines.Err())
	}
	return errGone
}

// explain returns why a child ended unexpectedly.
func (p *process) explain(ended error, limits Limits, reaching bool) error {
	words := p.words.String()
	memory, processor := "raise limits.renderMemory", "raise the source's timeout"
	if reaching {
		memory, processor = "give the run more memory, or read fewer sources at the same time with "+
			"limits.sourcesAtOnce", "to allow more time, raise the source's timeout"
	}
	switch {
	case strings.Contains(words, "out of memory"), strings.Contains(words, "cannot allocate memory"),
		// Starting a thread also needs memory.
		strings.Contains(words, "newosproc"), strings.Contains(words, "pthread_create failed"),
		// If Go's runtime itself cannot allocate memory, it may crash before reporting the failure.
		strings.Contains(words, "SIGSEGV") && peak(p.command.ProcessState) > limits.Memory/2:
		return Exceeded(fmt.Sprintf("needs more than %d MiB of memory; %s", limits.Memory>>20, memory))
	case p.command.ProcessState.ExitCode() == exitOvertime:
		return Exceeded(fmt.Sprintf("needs more than %s of CPU time; %s", limits.CPU, processor))
	case strings.Contains(words, "stack overflow"), strings.Contains(words, "stack exceeds"):
		return Exceeded("does not terminate: something in it contains itself, directly or indirectly")
	default:
		return p.lastWords(ended)
	}
}

// lastWords returns an error with the first line of the runtime's output.
func (p *process) lastWords(ended error) error {
	first, _, _ := strings.Cut(p.words.String(), "\n")
	return fmt.Errorf("the confined process exited early (%w): %q", ended, first)
}
