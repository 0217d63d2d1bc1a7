// Package confined runs a part of this program in a process of its own, a second run of the same
// binary, so that whatever that part is given to work on, it has an end: the process has bounds on
// its memory, its stack and its time, and is killed at a deadline. It opens no file and no socket,
// starts no program and reaches no other process; what it needs it asks this process for. Nothing
// of one task is left for the next.
//
// A part that cannot do without files or the network reaches what it is told, and nothing else: see
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

	"quorate.dev/quorate/excerpt"
)

// Limits of one process.
type Limits struct {
	// Memory in bytes, beyond what the program takes itself, and CPU, of the process.
	Memory int64
	CPU    time.Duration
	// LineBytes bounds one message of the child.
	LineBytes int
	// FileBytes bounds one file that it writes.
	FileBytes int64
}

// Exceeded is an error that says which bound a task goes past, as in "takes more than 1m0s of
// processor time", and which flag raises it. It would go past it again.
type Exceeded string

func (e Exceeded) Error() string { return string(e) }

// Run starts the child of that name, gives it the task, and calls hear for each line that it says,
// until that is done. What hear returns is sent to the child, if it is not nil. The error is an
// Exceeded, that of hear, that of the context, or says that the process could not be run.
func Run(ctx context.Context, name string, work any, limits Limits, hear Hear) error {
	return runChild(ctx, kind{name: name, environment: []string{}, dir: "/"}, work, limits, Reach{}, hear)
}

// RunReaching does as Run does for a child that ServeReaching makes. It has that environment, and
// the working directory of this process.
func RunReaching(
	ctx context.Context, name string, work any, limits Limits, reach Reach, environment []string, hear Hear,
) error {
	return runChild(ctx, kind{name: name, reaching: true, environment: append([]string{}, environment...)}, work,
		limits, reach, hear)
}

// Hear is told each line that a child says. What it returns is sent to the child, if it is not nil.
type Hear = func(line []byte) (answer any, done bool, err error)

// kind is how a child is started.
type kind struct {
	name        string
	environment []string
	dir         string
	// reaching is one of RunReaching, whose bounds other flags raise.
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
		return fmt.Errorf("start a process of its own to read in: %w", err)
	}
	told := p.converse(task{Limits: limits, Reach: reach, Task: encoded}, hear)
	if !errors.Is(told, errGone) {
		stop() // whatever it is still busy with
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

// process is a child at work.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	// words are the first of the child's runtime when it gave up: nothing else writes there.
	words excerpt.Head
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

// errGone says that the child ended before it was done.
var errGone = errors.New("the process has ended")

// converse gives the child its task and answers what it asks, until it is done. It is errGone if
// the child ended before.
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
		return fmt.Errorf("the process says more than %d bytes at once: %w", t.Limits.LineBytes, lines.Err())
	}
	return errGone
}

// explain says why a child ended that was not asked to.
func (p *process) explain(ended error, limits Limits, reaching bool) error {
	words := p.words.String()
	memory, processor := "--max-render-memory raises the limit", "--max-render-cpu raises the limit"
	if reaching {
		memory, processor = "give the run more, or have it read fewer sources at once with --sources-at-once",
			"--fetch-timeout allows more"
	}
	switch {
	case strings.Contains(words, "out of memory"), strings.Contains(words, "cannot allocate memory"),
		// A thread wants memory too.
		strings.Contains(words, "newosproc"), strings.Contains(words, "pthread_create failed"),
		// Where Go's runtime itself gets no memory, it may crash before it can say so.
		strings.Contains(words, "SIGSEGV") && peak(p.command.ProcessState) > limits.Memory/2:
		return Exceeded(fmt.Sprintf("takes more than %d MiB of memory; %s", limits.Memory>>20, memory))
	case p.command.ProcessState.ExitCode() == exitOvertime:
		return Exceeded(fmt.Sprintf("takes more than %s of processor time; %s", limits.CPU, processor))
	case strings.Contains(words, "stack overflow"), strings.Contains(words, "stack exceeds"):
		return Exceeded("does not end: something in it contains itself")
	default:
		return p.lastWords(ended)
	}
}

// lastWords are the first of what the runtime had to say.
func (p *process) lastWords(ended error) error {
	first, _, _ := strings.Cut(p.words.String(), "\n")
	return fmt.Errorf("the process that reads in confinement ended before it was done (%w): %q", ended, first)
}
