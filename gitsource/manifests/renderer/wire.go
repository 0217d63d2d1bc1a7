package renderer

import (
	"encoding/json"
	"io"
)

// What the processes say to each other, a line of JSON each: this one the task and then an Entry for each question, the child messages.

type task struct {
	Dir    string
	Limits Limits
}

// message is one of: a question what a name is, an object, a refusal. With none of them it is the last.
type message struct {
	Look    string  `json:",omitempty"`
	Object  *Object `json:",omitempty"`
	Refusal string  `json:",omitempty"`
}

// exitOvertime is the exit code of a child that has used up its processor time.
const exitOvertime = 3

func send(w io.Writer, what any) error {
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
