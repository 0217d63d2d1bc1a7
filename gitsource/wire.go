package gitsource

import (
	"context"
	"errors"
	"slices"
	"strings"

	"quorate.dev/quorate/gitsource/history"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/visible"
)

// job is what the process is to do: to read a source, or, with an older commit, to tell whether the
// newer one descends from it.
type job struct {
	Options Options
	// Unless is what is known already.
	Unless       refs.Revision
	Newer, Older string `json:",omitempty"`
}

// message is what the process says: that it has opened a revision, whose files are then asked for,
// or else an answer about them; or, as the last thing, an error, or what it has found. Decoding it
// takes memory by its length, whoever has written it.
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

// failure is an error as one process tells it to another. Kinds says of each of kinds whether it is
// one.
type failure struct {
	Text  string
	Kinds [len(kinds)]bool
}

// kinds are what errors of the other process are told apart by. That options are not valid is not
// among them: this process finds that by itself.
var kinds = [...]error{context.DeadlineExceeded, history.ErrCutOff, history.ErrGone, errReading}

// errReading says that the files of a revision could not be read. What asks for them knows why.
var errReading = errors.New("its files could not be read")

func failureOf(err error) *failure {
	f := &failure{Text: strings.TrimPrefix(err.Error(), ErrSource.Error()+": ")}
	for i, kind := range kinds {
		f.Kinds[i] = errors.Is(err, kind)
	}
	return f
}

// is says whether it is one of that kind.
func (f *failure) is(kind error) bool { return f.Kinds[slices.Index(kinds[:], kind)] }

// maxWords is how many bytes of an error of the process are told.
const maxWords = 1 << 10

// told is an error of the process that fetches. Somebody who has taken it over chooses the words,
// but neither which source they are about nor what follows from them.
func (c *conversation) told(f *failure) error {
	words := f.Text
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + " …"
	}
	e := &toldError{words: visible.Line(words), kinds: []error{ErrSource}}
	if !aboutSource(e.words, c.options.Location) {
		e.words = "read " + c.options.Location + ": " + e.words
	}
	for i, is := range f.Kinds {
		if is {
			e.kinds = append(e.kinds, kinds[i])
		}
	}
	return e
}

// toldError has what the other process says as its words.
type toldError struct {
	words string
	kinds []error
}

func (e *toldError) Error() string { return ErrSource.Error() + ": " + e.words }

func (e *toldError) Unwrap() []error { return e.kinds }

// aboutSource says whether the first that words name is the source.
func aboutSource(words, location string) bool {
	for _, done := range []string{"", "fetch ", "open ", "open the repository ", "find what to read in ",
		"read the references of "} {
		if rest, ok := strings.CutPrefix(words, done+location); ok &&
			(strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, " ")) {
			return true
		}
	}
	revision, _, ok := strings.Cut(words, " of "+location+": ") // read main@sha1:… of it
	return ok && strings.HasPrefix(revision, "read ") && strings.Count(revision, " ") == 1
}
