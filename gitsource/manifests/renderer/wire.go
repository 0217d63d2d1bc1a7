package renderer

import (
	"encoding/json"
	"io"
	"time"
)

// What the processes say to each other, a line of JSON each: this one the task and then replies, the child messages.

type task struct {
	Dir    string
	Memory int64
	CPU    time.Duration
}

// message is one of: a question what a file holds, a question what a name is, an object, a refusal. With none of them it is the last.
type message struct {
	Read    string  `json:",omitempty"`
	Look    string  `json:",omitempty"`
	Object  *Object `json:",omitempty"`
	Refusal string  `json:",omitempty"`
}

type reply struct {
	Content       []byte
	IsDir, IsFile bool
	Error         string
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
