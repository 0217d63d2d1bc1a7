package confined

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
)

// Serve makes every program that the caller is linked into, tests included, its own child: where
// the process was started as the child of that name it does the task, and the process ends. It is
// called when packages are initialized, so that nothing starts itself over and over.
func Serve(name string, do func(parent *Parent, task json.RawMessage)) {
	serveAs(name, func(t task) error { return confine(t.Limits) }, do)
}

// ServeReaching does as Serve does for a child that reaches what the task names, and nothing else.
// Before that holds it prepares what it can only then: with nothing but the task, which its parent
// has made.
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

// serve does one task and returns the exit code.
func serve(in io.Reader, out io.Writer, confine func(task) error, do func(*Parent, json.RawMessage)) int {
	stderr := os.Stderr
	defer runtime.KeepAlive(stderr) // it stays open for the runtime's last words
	os.Stdout, os.Stderr = nil, nil // libraries write there what they think of old fields
	log.SetOutput(io.Discard)
	answers := json.NewDecoder(in)
	var t task
	if err := answers.Decode(&t); err != nil {
		return 1
	}
	if err := confine(t); err != nil {
		fmt.Fprintf(stderr, "it could not be confined: %v\n", err)
		return 1
	}
	do(newParent(answers, out), t.Task)
	return 0
}

// Parent is the process that started this one, as this one sees it. It is for one goroutine.
type Parent struct {
	out     io.Writer
	answers chan json.RawMessage
}

// newParent reads answers at once as they come, so that the child ends with the parent, whatever it
// is busy with.
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

// Tell says something that has no answer.
func (p *Parent) Tell(message any) {
	if err := send(p.out, message); err != nil {
		gone()
	}
}

// Ask says something, and decodes the answer to it.
func (p *Parent) Ask(question, answer any) {
	p.Tell(question)
	if err := json.Unmarshal(<-p.answers, answer); err != nil {
		gone()
	}
}

// gone ends the process: nobody is left to work for.
func gone() {
	os.Exit(1) //nolint:forbidigo // whatever the process is busy with
}
