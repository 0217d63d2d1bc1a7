package confined

import (
	"encoding/json"
	"io"
)

// The processes exchange JSON, one message per line. The parent sends the task, and then answers. The child sends
// questions and results.

type task struct {
	Limits Limits
	Reach  Reach
	Task   json.RawMessage
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
