package gitsource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/gitsource/refs"
)

// childName is the process name of the fetcher, used in place of the program's name.
const childName = "quorate-fetch"

// fetchInChild does the work of fetchHere in a child process, the fetcher. The fetcher receives only the options, which
// contain the credentials of this source but not the run's token. The files that it reads are parsed in a third
// process.
func fetchInChild(ctx context.Context, o Options, unless refs.Revision) (refs.Revision, Desired, error) {
	c := conversation{ctx: ctx, options: o}
	last, err := c.run(job{Options: o, Unless: unless})
	switch {
	case err != nil:
		return refs.Revision{}, Desired{}, err
	case unless.Commit != "" && last.Found != nil && *last.Found == unless:
		return unless, Desired{}, nil
	case last.Found == nil || !c.hasRead(*last.Found):
		return refs.Revision{}, Desired{}, sourceErrorf(
			"read %s: the fetch process did not report a result", o.Location)
	}
	return *last.Found, c.reading.desired, nil
}

// hasRead reports whether found, the revision that the fetcher reports, was both requested and read.
func (c *conversation) hasRead(found refs.Revision) bool {
	if c.reading == nil || c.reading.err != nil || found.Name != c.reading.desired.Revision.Name {
		return false
	}
	return c.plausible(found) && c.meant(found)
}

// descendsInChild does the work of descendsHere in a child process.
func descendsInChild(ctx context.Context, o Options, newer, older string) (bool, error) {
	c := conversation{ctx: ctx, options: o}
	last, err := c.run(job{Options: o, Newer: newer, Older: older})
	return err == nil && last.Descends, err
}

// conversation is an exchange of messages with the fetcher.
type conversation struct {
	ctx     context.Context
	options Options
	// reading reads the revision that was opened last. It is nil until a revision is opened.
	reading *reading
	last    message
}

// run runs a job and returns the last message.
func (c *conversation) run(j job) (last message, err error) {
	var stop context.CancelFunc
	c.ctx, stop = context.WithCancel(c.ctx)
	reach, environment, remove := reachFor(c.options, os.Environ())
	defer func() {
		if left := remove(); left != nil && err == nil {
			err = sourceError(left, "remove the temporary files of %s", c.options.Location)
		} else if left != nil {
			err = fmt.Errorf("%w; its temporary files were not removed: %w", err, left)
		}
	}()
	err = confined.RunReaching(c.ctx, childName, j, limitsFor(c.options), reach, environment, c.onMessage)
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
	case f.is(errReading) && c.reading != nil && c.reading.err != nil:
		return message{}, c.reading.err
	default:
		return message{}, c.told(f)
	}
}

// onMessage handles a message from the fetcher and returns the reply. It returns true for the last message.
func (c *conversation) onMessage(line []byte) (any, bool, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, false, fmt.Errorf("decode the response of the fetch process: %w", err)
	}
	switch {
	case m.Opened != nil:
		if err := c.check(*m.Opened); err != nil {
			return nil, false, err
		}
		c.reading = startReading(c.ctx, c.options, *m.Opened)
		return c.next()
	case m.Answer != nil:
		if err := m.Answer.Check(c.options.Limits); err != nil {
			return nil, false, fmt.Errorf("invalid response from the fetch process: it contains %w", err)
		}
		if c.reading == nil || !c.reading.answer(*m.Answer) {
			return nil, false, errors.New("invalid response from the fetch process: it was not requested")
		}
		return c.next()
	default:
		c.last = m
		return nil, true, nil
	}
}

// next returns the next question for the fetcher, or the outcome once reading has ended.
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

// reading reads the files of one revision. The fetcher, which has the files, answers one question at a time.
type reading struct {
	questions chan manifests.Question
	answers   chan manifests.Answer
	// asked is set while a question is unanswered.
	asked bool
	// ended is closed once desired and err are set.
	ended   chan struct{}
	desired Desired
	err     error
}

func startReading(ctx context.Context, o Options, what refs.Revision) *reading {
	r := &reading{questions: make(chan manifests.Question), answers: make(chan manifests.Answer),
		ended: make(chan struct{})}
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

// answer delivers an answer. It returns false if no question was pending.
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
