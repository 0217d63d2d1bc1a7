package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Question asks about one name in a source: the entries of a directory (List), the type of a file (Kind) or its content
// (Read).
type Question struct {
	List, Kind, Read string `json:",omitempty"`
}

// Answer is the answer to a Question, sent from one process to another.
type Answer struct {
	Entries entries     `json:",omitempty"`
	Kind    fs.FileMode `json:",omitempty"`
	Content []byte      `json:",omitempty"`
	Error   string      `json:",omitempty"`
	// Missing is set if the name does not exist.
	Missing bool `json:",omitempty"`
}

// Answers returns a function that answers questions about a file system, within the limits on a file.
func Answers(fsys fs.FS, l Limits) func(Question) Answer {
	t := fsTree{fsys, l.orDefault().FileBytes}
	return func(q Question) (a Answer) {
		var err error
		switch {
		case q.List != "":
			a.Entries, err = t.list(q.List)
		case q.Kind != "":
			a.Kind, err = t.kind(q.Kind)
		default:
			a.Content, err = t.read(q.Read)
		}
		if err != nil {
			text := err.Error()
			return Answer{Error: text[:min(len(text), maxErrorBytes)], Missing: errors.Is(err, fs.ErrNotExist)}
		}
		return a
	}
}

// maxErrorBytes is the maximum length of an error about one name.
const maxErrorBytes = 1 << 10

// Check returns an error unless Answers could have given this answer within the limits.
func (a Answer) Check(l Limits) error {
	bound := l.orDefault().FileBytes
	switch {
	case int64(len(a.Content)) > bound:
		return fmt.Errorf("a file of %d bytes, but the maximum is %s", len(a.Content), mebibytes(bound))
	case a.Entries.bytes() > ListBytes(bound):
		return fmt.Errorf("a directory listing of %d bytes, but the maximum is %s", a.Entries.bytes(),
			mebibytes(ListBytes(bound)))
	case len(a.Error) > maxErrorBytes:
		return fmt.Errorf("an error of %d bytes", len(a.Error))
	}
	return nil
}

// entries lists the entries of one directory.
type entries []entry

// ListBytes returns the maximum size of one directory listing, given the limit on one file.
func ListBytes(fileBytes int64) int64 { return max(2*fileBytes, 1<<20) }

// bytes returns the approximate size of the entries, as text and in memory.
func (all entries) bytes() int64 {
	sum := int64(0)
	for _, e := range all {
		sum += int64(len(e.Name)) + 32
	}
	return sum
}

// UnmarshalJSON limits memory use to that of an honest listing. Without this check, entries without names could take
// ten times as much memory as their text.
func (all *entries) UnmarshalJSON(text []byte) error {
	least := len(`{"Name":"x","Type":0},`)
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return errors.New("the entries of a directory are not a list")
	}
	*all = nil
	for d.More() {
		var e entry
		if err := d.Decode(&e); err != nil {
			return err
		}
		if len(*all) > len(text)/least || e.Name == "" {
			return errors.New("a directory has an entry without a name")
		}
		*all = append(*all, e)
	}
	return nil
}
