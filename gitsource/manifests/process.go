package manifests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	apijson "k8s.io/apimachinery/pkg/util/json"

	"quorate.dev/quorate/gitsource/manifests/confined"
)

// childName is what the process that takes sources apart is called instead of the name of the
// program.
const childName = "quorate-render"

func init() { confined.Serve(childName, serve) }

// message is what the child says, one of: a question, which is answered by an answer; the
// kustomization that it renders from now on; one thing that it has read; or why nothing was read.
// With none of them it is the last.
type message struct {
	Question
	Rendering string   `json:",omitempty"`
	Cluster   *told    `json:",omitempty"`
	Problem   *Problem `json:",omitempty"`
	Error     string   `json:",omitempty"`
}

// told is a declared cluster as one process tells it the other.
type told struct {
	// Cluster and Applied are as in Declared.
	Cluster, Applied json.RawMessage
	File             string
	Line             int
	Lines            map[string]int `json:",omitempty"`
	Warnings         []string
}

func (t told) declared() (Declared, error) {
	d := Declared{File: t.File, Line: t.Line, Lines: t.Lines, Warnings: t.Warnings}
	if err := json.Unmarshal(t.Cluster, &d.Cluster); err != nil {
		return d, err
	}
	return d, apijson.Unmarshal(t.Applied, &d.Applied)
}

// maxLine bounds a message of the child: the longest is a cluster, twice, each time as large as it
// may be.
func maxLine(l Limits) int { return int(2*l.FileBytes) + 256<<10 }

// serve is the child.
func serve(parent *confined.Parent, work json.RawMessage) {
	var o Options
	if err := json.Unmarshal(work, &o); err != nil {
		parent.Tell(message{Error: err.Error()})
		return
	}
	clusters, problems, err := take(context.Background(), asked{parent}, o,
		func(root string) { parent.Tell(message{Rendering: root}) })
	if err != nil {
		parent.Tell(message{Error: err.Error()})
		return
	}
	for i := range clusters {
		parent.Tell(message{Cluster: &clusters[i]})
	}
	for i := range problems {
		parent.Tell(message{Problem: &problems[i]})
	}
	parent.Tell(message{})
}

// asked is the tree that the parent has.
type asked struct{ parent *confined.Parent }

func (t asked) ask(question Question) (a Answer, err error) {
	t.parent.Ask(message{Question: question}, &a)
	switch {
	case a.Missing:
		err = fs.ErrNotExist
	case a.Error != "":
		err = errors.New(a.Error)
	}
	return a, err
}

func (t asked) list(dir string) ([]entry, error) {
	a, err := t.ask(Question{List: dir})
	return a.Entries, err
}

func (t asked) kind(name string) (fs.FileMode, error) {
	a, err := t.ask(Question{Kind: name})
	return a.Kind, err
}

func (t asked) read(name string) ([]byte, error) {
	a, err := t.ask(Question{Read: name})
	return a.Content, err
}

// reading is what the parent knows of a source that a child reads.
type reading struct {
	ctx context.Context
	// tell answers what is asked about the source.
	tell    func(Question) Answer
	options Options
	// at is the file that the child has asked for last, or the kustomization that it renders, and
	// doing what it does there.
	at, doing string
	// missing is which part of the path to read is known to be missing.
	missing string
	read    Declarations
}

// hear answers the child. It is done at the last message.
func (r *reading) hear(line []byte) (any, bool, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, false, err
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, false, fmt.Errorf("understand the process that reads in confinement: %w", err)
	}
	switch {
	case m.Question != (Question{}):
		return r.answer(m.Question), false, nil
	case m.Rendering != "":
		r.at, r.doing = m.Rendering, "rendering"
		return nil, false, nil
	case m.Cluster != nil:
		d, err := m.Cluster.declared()
		if err == nil {
			err = r.believe(d)
		}
		return nil, false, err
	case m.Problem != nil:
		return nil, false, r.believeProblem(*m.Problem)
	case r.missing != "":
		return nil, true, MissingError{r.missing} // whatever the child says of it
	case m.Error != "":
		return nil, true, errors.New(m.Error)
	default:
		return nil, true, nil
	}
}

func (r *reading) answer(q Question) Answer {
	if q.Read != "" && r.doing == "reading" {
		r.at = q.Read
	}
	a := r.tell(q)
	if onTheWay := q.Kind == r.options.Path || strings.HasPrefix(r.options.Path, q.Kind+"/"); onTheWay && a.Missing {
		r.missing = q.Kind
	}
	return a
}
