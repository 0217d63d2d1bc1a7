package manifests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	apijson "k8s.io/apimachinery/pkg/util/json"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/gitsource/manifests/confined"
)

// childName is the process name of the child that parses sources, used in place of the program's name.
const childName = "quorate-render"

func init() { confined.Serve(childName, serve) }

// message is sent by the child. It contains one of the following: a question for the parent, the kustomization that the
// child is about to render, a cluster, a problem, or an error. An empty message is the last message.
type message struct {
	Question
	Rendering string       `json:",omitempty"`
	Cluster   *wireCluster `json:",omitempty"`
	Problem   *Problem     `json:",omitempty"`
	Error     string       `json:",omitempty"`
}

// wireCluster is a declared cluster in the form sent from one process to another.
type wireCluster struct {
	// Cluster and Applied are the fields of Declared, as JSON.
	Cluster, Applied json.RawMessage
	File             string
	Line             int
	Lines            map[string]int `json:",omitempty"`
	Warnings         []string
}

func (t wireCluster) declared() (Declared, error) {
	d := Declared{File: t.File, Line: t.Line, Lines: t.Lines, Warnings: t.Warnings}
	if err := json.Unmarshal(t.Cluster, &d.Cluster); err != nil {
		return d, err
	}
	d.Cluster.Status = v1alpha1.EtcdClusterStatus{} // the status is never read from git
	return d, apijson.Unmarshal(t.Applied, &d.Applied)
}

// maxLine returns the maximum size of a message from the child. The longest message contains a cluster twice, as
// Cluster and as Applied.
func maxLine(l Limits) int { return int(2*l.FileBytes) + 256<<10 }

// resultBytes is the maximum size of everything that the child sends about an object in addition to its content and its
// lines: defaults, warnings or problems.
const resultBytes = 4 << 10

// mostKept returns the maximum total size of the clusters and problems that an honest child sends. Each cluster is sent
// twice, as Cluster and as Applied, each of which takes up to 2*TotalBytes (see files.declare). The lines of all
// clusters take up to TotalBytes, and up to twice as much as JSON.
func mostKept(l Limits) int64 {
	l = l.orDefault()
	return (2*2+2)*l.TotalBytes + int64(l.Objects+allProblems)*resultBytes
}

// serve runs in the child. It reads the source and sends the result to the parent.
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

// asked is a tree whose files the parent reads on request.
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

// reading is the parent's state while a child reads a source.
type reading struct {
	ctx context.Context
	// tell answers questions about the source.
	tell    func(Question) Answer
	options Options
	// at is the file that the child requested last, or the kustomization that it is rendering. doing is the child's
	// activity: reading or rendering.
	at, doing string
	// missing is the part of the path that is known to be missing.
	missing string
	read    Declarations
	// kept is the total size of the messages whose content is kept, and keptMemory is an estimate of the memory that
	// their content takes.
	kept, keptMemory int64
}

// hear handles a message from the child and returns the reply. It returns true for the last message.
func (r *reading) hear(line []byte) (any, bool, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, false, err
	}
	var m message
	if !utf8.Valid(line) { // decoding would triple the size of invalid text
		return nil, false, errors.New("decode the response of the confined process: it is not valid UTF-8")
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, false, fmt.Errorf("decode the response of the confined process: %w", err)
	}
	switch {
	case m.Question != (Question{}):
		return r.answer(m.Question), false, nil
	case m.Rendering != "":
		r.at, r.doing = m.Rendering, "rendering"
		return nil, false, nil
	case m.Cluster != nil:
		return nil, false, r.hearCluster(line, *m.Cluster)
	case m.Problem != nil:
		return nil, false, r.hearProblem(line, *m.Problem)
	case r.missing != "":
		return nil, true, MissingError{r.missing} // regardless of the child's last message
	case m.Error != "":
		return nil, true, errors.New(m.Error)
	default:
		return nil, true, nil
	}
}

func (r *reading) hearCluster(line []byte, t wireCluster) error {
	if err := r.keep(line, t.footprint(line)); err != nil {
		return err
	}
	d, err := t.declared()
	if err != nil {
		return err
	}
	return r.believe(d)
}

func (r *reading) hearProblem(line []byte, p Problem) error {
	if err := r.keep(line, footprint(line)); err != nil {
		return err
	}
	return r.believeProblem(p)
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
