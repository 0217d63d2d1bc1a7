package gitsource

import (
	"context"
	"errors"

	"quorate.dev/quorate/gitsource/history"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
)

// job is what the process is to do: to read a source, or, with an older commit, to tell whether the newer one descends from it.
type job struct {
	Options Options
	// Unless is what is known already.
	Unless       refs.Revision
	Newer, Older string `json:",omitempty"`
}

// message is what the process says: that it has opened a revision, whose files are then asked for, or else an answer about them; or, as the last
// thing, an error, or what it has found. Decoding it takes memory by its length, whoever has written it.
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

// failure is an error as one process tells it to another. Kinds says of each of kinds whether it is one.
type failure struct {
	Text  string
	Kinds [len(kinds)]bool
}

// kinds are what errors are told apart by.
var kinds = [...]error{ErrSource, ErrOptions, context.DeadlineExceeded, history.ErrCutOff, errReading}

// errReading says that the files of a revision could not be read. What asks for them knows why.
var errReading = errors.New("its files could not be read")

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	for i, kind := range kinds {
		f.Kinds[i] = errors.Is(err, kind)
	}
	return f
}

// maxErrorBytes of an error of the process.
const maxErrorBytes = 64 << 10

// Error and Unwrap make it the error that it was.
func (f *failure) Error() string { return f.Text[:min(len(f.Text), maxErrorBytes)] }

func (f *failure) Unwrap() []error {
	var all []error
	for i, is := range f.Kinds {
		if is {
			all = append(all, kinds[i])
		}
	}
	return all
}
