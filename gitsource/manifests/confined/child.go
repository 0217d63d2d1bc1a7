package confined

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
)

// Serve enables every program that links the caller, including tests, to run as its own child. If this process was
// started as the child called name, Serve runs the task and exits. Call it during package initialization, so that a
// child does not start itself recursively.
func Serve(name string, do func(parent *Parent, task json.RawMessage)) {
	serveAs(name, func(t task) error { return confine(t.Limits) }, do)
}

// ServeReaching is like Serve, for a child that can access the files and the network that the task allows. prepare runs
// before confinement, and can do what is impossible afterwards. It receives only the task, which comes from the parent.
func ServeReaching(name string, prepare func(task json.RawMessage), do func(parent *Parent, task json.RawMessage)) {
	serveAs(name, func(t task) error {
		prepare(t.Task)
		return confineTo(t.Reach, t.Limits)
	}, do)
}

func serveAs(name string, confine func(task) error, do func(parent *Parent, task json.RawMessage)) {
	if len(os.Args) == 1 && os.Args[0] == name {
		code := serve(os.Stdin, os.Stdout, confine, do)
		os.Exit(code) //nolint:forbidigo // the child is this function, and nothing is deferred before it
	}
}

// serve runs one task and returns the exit code.
func serve(in io.Reader, out io.Writer, confine func(task) error, do func(*Parent, json.RawMessage)) int {
	stderr := os.Stderr
	defer runtime.KeepAlive(stderr) // keep stderr open for the runtime's last messages
	os.Stdout, os.Stderr = nil, nil // libraries would print warnings about deprecated fields
	log.SetOutput(io.Discard)
	answers := json.NewDecoder(in)
	var t task
	if err := answers.Decode(&t); err != nil {
		return 1
	}
	if err := confine(t); err != nil {
		fmt.Fprintf(stderr, "the process could not be confined: %v\n", err)
		return 1
	}
	do(newParent(answers, out), t.Task)
	return 0
}

// Parent is the child's connection to its parent process. Use it from only one goroutine.
type Parent struct {
	out     io.Writer
	answers chan json.RawMessage
}

// newParent reads answers as soon as they arrive, so that the child ends with the parent even if it is busy.
func newParent(in *json.Decoder, out io.Writer) *Parent {
	p := &Parent{out: out, answers: make(chan json.RawMessage)}
	go func() {
		for {
			var answer json.RawMessage
			if err := in.Decode(&answer); err != nil {
				gone()
			}
			p.answers <- answer
		}
	}()
	return p
}

// Tell sends a message without waiting for an answer.
func (p *Parent) Tell(message any) {
	if err := send(p.out, message); err != nil {
		gone()
	}
}

// Ask sends a message and decodes its answer.
func (p *Parent) Ask(question, answer any) {
	p.Tell(question)
	if err := json.Unmarshal(<-p.answers, answer); err != nil {
		gone()
	}
}

// gone ends the process because its parent has ended.
func gone() {
	os.Exit(1) //nolint:forbidigo // whatever the process is busy with
}
