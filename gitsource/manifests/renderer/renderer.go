// Package renderer runs kustomize in a process of its own, a second run of the same binary, so that whatever a kustomization asks for has an end:
// the process has bounds on its memory and its time, and is killed at a deadline. It opens no file and no socket and starts no program; what it
// reads it asks this process for. Nothing of one rendering is left for the next.
package renderer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Files is what kustomize sees. Each name is asked for once at most.
type Files interface {
	// Look returns what an absolute path names.
	Look(name string) Entry
}

// Entry is a file, a directory, or neither.
type Entry struct {
	IsFile, IsDir bool
	// Content of the file.
	Content []byte
	// Kustomizations are the names in the directory by which kustomize knows a kustomization.
	Kustomizations []string
}

// Limits of one rendering.
type Limits struct {
	// Memory in bytes, and CPU, of the process.
	Memory int64
	CPU    time.Duration
	// ObjectBytes bounds one object, as JSON.
	ObjectBytes int64
	// Kustomizations that are built on one another, each as often as it is built on.
	Kustomizations int
}

// Object is one rendered object.
type Object struct {
	// JSON of the object; nil if it has none.
	JSON json.RawMessage
	// Origin is the path of the file that the object comes from, relative to the rendered directory; empty if that is unknown.
	Origin string
	// Problem says why it has no JSON.
	Problem string
}

// Refusal is an error that says why a kustomization was not rendered: it is wrong, or asks for too much. It would be refused again.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Render renders the kustomization in the directory dir, and calls each for every object. The error is a Refusal, that of each, that of the
// context, or says that the process could not be run.
func Render(ctx context.Context, files Files, dir string, limits Limits, each func(Object) error) error {
	limits.Memory = min(limits.Memory, affordable())
	running, stop := context.WithCancel(ctx)
	defer stop()
	p, err := start(running)
	if err != nil {
		return fmt.Errorf("start the process that renders: %w", err)
	}
	told := p.converse(files, task{Dir: dir, Limits: limits}, limits, each)
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
		return p.explain(ended, limits)
	}
}

// process is a child that renders.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	// words are the first of the child's runtime when it gave up: nothing else writes there.
	words *head
}

func start(ctx context.Context) (*process, error) {
	program, err := self()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.CommandContext(ctx, program), words: &head{}}
	p.command.Args = []string{childName}
	p.command.Env = []string{}
	p.command.Dir = "/"
	p.command.Stderr = p.words
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
var errGone = errors.New("the process that renders has ended")

// converse gives the child its task and answers what it asks, until it is done. It is errGone if the child ended before.
func (p *process) converse(files Files, t task, limits Limits, each func(Object) error) error {
	defer p.in.Close()
	if err := send(p.in, t); err != nil {
		return errGone
	}
	lines := bufio.NewScanner(p.out)
	lines.Buffer(nil, int(limits.ObjectBytes)+64<<10) // and what is around it
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fmt.Errorf("read what the process that renders says: %w", err)
		}
		if m.Object != nil && int64(len(m.Object.JSON)) > limits.ObjectBytes {
			return tooLarge(limits)
		}
		done, err := p.answer(files, m, each)
		if done || err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return tooLarge(limits)
	}
	return errGone
}

func tooLarge(limits Limits) Refusal {
	return Refusal(fmt.Sprintf("an object that it renders is larger than %d bytes; --max-file-bytes raises the limit", limits.ObjectBytes))
}

// answer answers one message. It is done at the last.
func (p *process) answer(files Files, m message, each func(Object) error) (done bool, err error) {
	switch {
	case m.Object != nil:
		return false, each(*m.Object)
	case m.Look != "":
		if err := send(p.in, files.Look(m.Look)); err != nil {
			return false, errGone
		}
		return false, nil
	case m.Refusal != "":
		return true, Refusal(m.Refusal)
	default:
		return true, nil
	}
}

// explain says why a child ended that was not asked to.
func (p *process) explain(ended error, limits Limits) error {
	words := p.words.String()
	switch {
	case strings.Contains(words, "out of memory"), strings.Contains(words, "cannot allocate memory"),
		// Where Go's runtime itself gets no memory, it may crash before it can say so.
		strings.Contains(words, "SIGSEGV") && peak(p.command.ProcessState) > limits.Memory/2:
		return Refusal(fmt.Sprintf("rendering it takes more than %d MiB of memory; --max-render-memory raises the limit", limits.Memory>>20))
	case p.command.ProcessState.ExitCode() == exitOvertime:
		return Refusal(fmt.Sprintf("rendering it takes more than %s of processor time; --max-render-cpu raises the limit", limits.CPU))
	case strings.Contains(words, "stack overflow"), strings.Contains(words, "stack exceeds"):
		return Refusal("rendering it does not end: something in it contains itself")
	default:
		first, _, _ := strings.Cut(words, "\n")
		return fmt.Errorf("the process that renders ended before it was done (%w): %q", ended, first)
	}
}

// head keeps the first that is written to it.
type head struct {
	mu   sync.Mutex
	text []byte
}

const headSize = 4 << 10

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, p[:min(len(p), headSize-len(h.text))]...)
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.text)
}
