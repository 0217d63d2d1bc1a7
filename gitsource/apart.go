package gitsource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"quorate.dev/quorate/gitsource/history"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/gitsource/refs"
)

// childName is what the process that fetches is called instead of the name of the program.
const childName = "quorate-fetch"

// job is what the process is to do: to read a source, or, with an older commit, to tell whether the newer one descends from it.
type job struct {
	Options Options
	// Unless is what is known already.
	Unless       refs.Revision
	Newer, Older string `json:",omitempty"`
}

// message is what the process says: that it has opened a revision, whose files are then asked for, or else an answer about them; or, as the last
// thing, an error, or what it has found.
type message struct {
	Opened *refs.Revision    `json:",omitempty"`
	Answer *manifests.Answer `json:",omitempty"`
	Failed *failure          `json:",omitempty"`
	// Found is the revision that was found, and Descends whether one descends from the other.
	Found    *refs.Revision `json:",omitempty"`
	Descends bool           `json:",omitempty"`
}

// question is what it is asked then, or how the reading has ended.
type question struct {
	manifests.Question
	Ended, Failed bool `json:",omitempty"`
}

// failure is an error as one process tells it to another. It is of as many of kinds as it says.
type failure struct {
	Text  string
	Kinds []int `json:",omitempty"`
}

// kinds are what errors are told apart by.
var kinds = []error{ErrSource, ErrOptions, context.DeadlineExceeded, history.ErrCutOff, errReading}

// errReading says that the files of a revision could not be read. What asks for them knows why.
var errReading = errors.New("its files could not be read")

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			f.Kinds = append(f.Kinds, i)
		}
	}
	return f
}

// maxErrorBytes of an error of the process.
const maxErrorBytes = 64 << 10

// Error and Unwrap make it the error that it was.
func (f *failure) Error() string { return f.Text[:min(len(f.Text), maxErrorBytes)] }

func (f *failure) Unwrap() []error {
	var all []error
	for _, i := range f.Kinds {
		if i >= 0 && i < len(kinds) {
			all = append(all, kinds[i])
		}
	}
	return all
}

// fetchApart does as fetchHere does, in a process of its own that has nothing of this one but the options: not the token of the run, and no
// credentials but those for this source. What it reads of the files is taken apart in yet another process.
func fetchApart(ctx context.Context, o Options, unless refs.Revision) (refs.Revision, Desired, error) {
	c := conversation{ctx: ctx, options: o}
	last, err := c.run(job{Options: o, Unless: unless})
	switch {
	case err != nil:
		return refs.Revision{}, Desired{}, err
	case unless.Commit != "" && last.Found != nil && *last.Found == unless:
		return unless, Desired{}, nil
	case c.reading == nil || c.reading.err != nil || last.Found == nil || !c.believable(*last.Found) || last.Found.Name != c.reading.desired.Revision.Name:
		return refs.Revision{}, Desired{}, sourceErrorf("read %s: the process that fetches does not say what it has found", o.Location)
	}
	return *last.Found, c.reading.desired, nil
}

// descendsApart does as descendsHere does, in a process of its own.
func descendsApart(ctx context.Context, o Options, newer, older string) (bool, error) {
	c := conversation{ctx: ctx, options: o}
	last, err := c.run(job{Options: o, Newer: newer, Older: older})
	return err == nil && last.Descends, err
}

// conversation is one with the process that fetches.
type conversation struct {
	ctx     context.Context
	options Options
	// reading is that of the revision that was opened last, if there is one.
	reading *reading
	last    message
}

// run does a job, and returns what was said last.
func (c *conversation) run(j job) (message, error) {
	var stop context.CancelFunc
	c.ctx, stop = context.WithCancel(c.ctx)
	reach, environment, remove := reachFor(c.options, os.Environ())
	defer remove()
	limits := confined.Limits{Memory: c.options.Memory, LineBytes: maxLine(c.options)}
	err := confined.RunReaching(c.ctx, childName, j, limits, reach, environment, c.hear)
	stop()
	if c.reading != nil {
		<-c.reading.ended
	}
	if err != nil {
		return message{}, sourceError(err, "read %s", c.options.Location)
	}
	switch f := c.last.Failed; {
	case f == nil:
		return c.last, nil
	case errors.Is(f, errReading) && c.reading != nil && c.reading.err != nil:
		return message{}, c.reading.err
	default:
		return message{}, f
	}
}

// maxLine bounds a message: a file as base64, or a directory, which git has as one object too.
func maxLine(o Options) int {
	return int(2*o.fileBytes() + 2*o.Transfer.Pack.OrDefault().ObjectBytes + 256<<10)
}

// hear answers the process. It is done at the last message.
func (c *conversation) hear(line []byte) (any, bool, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, false, fmt.Errorf("understand the process that fetches: %w", err)
	}
	switch {
	case m.Opened != nil:
		if err := c.believe(*m.Opened); err != nil {
			return nil, false, err
		}
		c.reading = startReading(c.ctx, c.options, *m.Opened)
		return c.next()
	case m.Answer != nil:
		if c.reading == nil || !c.reading.answer(*m.Answer) {
			return nil, false, errors.New("believe the process that fetches: it answers what nobody has asked")
		}
		return c.next()
	default:
		c.last = m
		return nil, true, nil
	}
}

// next is what is asked of the process next.
func (c *conversation) next() (any, bool, error) {
	select {
	case q := <-c.reading.questions:
		c.reading.asked = true
		return question{Question: q}, false, nil
	case <-c.reading.ended:
		return question{Ended: true, Failed: c.reading.err != nil}, false, nil
	case <-c.ctx.Done():
		return nil, false, context.Cause(c.ctx)
	}
}

// reading is the files of one revision being read. The process that has them answers one question after the other.
type reading struct {
	questions chan manifests.Question
	answers   chan manifests.Answer
	// asked says that there is a question without an answer.
	asked bool
	// ended is closed when desired and err say what was read.
	ended   chan struct{}
	desired Desired
	err     error
}

func startReading(ctx context.Context, o Options, what refs.Revision) *reading {
	r := &reading{questions: make(chan manifests.Question), answers: make(chan manifests.Answer), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.desired, r.err = readFrom(ctx, o, func(q manifests.Question) manifests.Answer { return r.ask(ctx, q) }, what)
	}()
	return r
}

func (r *reading) ask(ctx context.Context, q manifests.Question) manifests.Answer {
	select {
	case r.questions <- q:
	case <-ctx.Done():
		return manifests.Answer{Error: ctx.Err().Error()}
	}
	select {
	case a := <-r.answers:
		return a
	case <-ctx.Done():
		return manifests.Answer{Error: ctx.Err().Error()}
	}
}

// answer hands an answer over, unless nothing was asked.
func (r *reading) answer(a manifests.Answer) bool {
	if !r.asked {
		return false
	}
	r.asked = false
	select {
	case r.answers <- a:
	case <-r.ended:
	}
	return true
}
