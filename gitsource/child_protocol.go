package gitsource

import (
	"context"
	"errors"
	"slices"
	"strings"

	"quorate.dev/quorate/gitsource/history"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/revision"
)

// job is a task for the fetcher: to read a source or, if Older is set, to determine whether Newer descends from Older.
type job struct {
	Options Options
	// Unless is the revision that is already known.
	Unless       refs.Revision
	Newer, Older string `json:",omitempty"`
}

// message is sent by the fetcher. It reports an opened revision, whose files can then be requested, or answers a
// question about them. The last message reports an error or the result. Decoding a message takes memory in proportion
// to its length, even if a compromised fetcher wrote it.
type message struct {
	Opened *refs.Revision    `json:",omitempty"`
	Answer *manifests.Answer `json:",omitempty"`
	Failed *failure          `json:",omitempty"`
	// Found is the revision that the fetcher found. Descends is the answer to a job with Older set.
	Found    *refs.Revision `json:",omitempty"`
	Descends bool           `json:",omitempty"`
}

// question is the reply to a message: the next question, or the outcome of reading.
type question struct {
	manifests.Question
	Ended, Failed bool `json:",omitempty"`
}

// failure is an error sent from one process to another. Kinds holds, for each error in kinds, whether the failure
// matches that error.
type failure struct {
	Text  string
	Kinds [len(kinds)]bool
}

// kinds lists the errors that are recognized across processes. ErrOptions is not included, because this process checks
// the options itself.
var kinds = [...]error{context.DeadlineExceeded, history.ErrCutOff, history.ErrGone, errReading}

// errReading is returned in the fetcher if the files of a revision could not be read. The parent knows the cause.
var errReading = errors.New("its files could not be read")

func failureOf(err error) *failure {
	f := &failure{Text: strings.TrimPrefix(err.Error(), ErrSource.Error()+": ")}
	for i, kind := range kinds {
		f.Kinds[i] = errors.Is(err, kind)
	}
	return f
}

// is reports whether the failure matches kind, which must be in kinds.
func (f *failure) is(kind error) bool { return f.Kinds[slices.Index(kinds[:], kind)] }

// maxWords is the maximum length, in bytes, of an error message from the fetcher. Longer messages are truncated.
const maxWords = 1 << 10

// told converts a failure of the fetcher to an error. A compromised fetcher can choose the words and any of kinds, but
// the error always names the source and matches ErrSource.
func (c *conversation) told(f *failure) error {
	words := f.Text
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + " …"
	}
	e := &toldError{words: printable.Line(words), kinds: []error{ErrSource}}
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

// toldError is an error in the fetcher's words.
type toldError struct {
	words string
	kinds []error
}

func (e *toldError) Error() string { return ErrSource.Error() + ": " + e.words }

func (e *toldError) Unwrap() []error { return e.kinds }

// aboutSource reports whether words begin by naming the source.
func aboutSource(words, location string) bool {
	for _, done := range []string{"", "fetch ", "open ", "open the repository ", "find the revision to read in ",
		"read the references of "} {
		if rest, ok := strings.CutPrefix(words, done+location); ok &&
			(strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, " ")) {
			return true
		}
	}
	read, _, ok := strings.Cut(words, " of "+location+": ")
	text, reads := strings.CutPrefix(read, "read ")
	_, is := revision.Parse(text)
	return ok && reads && is
}
