package confined

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

const testReacher = "quorate-test-reacher"

func init() { ServeReaching(testReacher, func(json.RawMessage) {}, reachOut) }

// reachOut does what the task names, in a process that reaches files and the network.
func reachOut(parent *Parent, work json.RawMessage) {
	var what string
	if err := json.Unmarshal(work, &what); err != nil {
		panic(err)
	}
	switch what {
	case "take memory":
		for all := work; ; {
			all = append(all, bytes.Repeat([]byte("x"), len(all))...)
		}
	case "take time":
		for i := 0; ; i++ {
			work = work[:i%2]
		}
	}
}

// A process that reaches others has the bounds of any, and says which one it has gone past.
func TestReachingIsBounded(t *testing.T) {
	for what, want := range map[string]string{
		"take memory": "takes more than 96 MiB of memory",
		"take time":   "takes more than 1s of processor time",
	} {
		limits := Limits{Memory: 96 << 20, CPU: time.Second, LineBytes: 1 << 10}
		err := RunReaching(t.Context(), testReacher, what, limits, Reach{}, nil, func([]byte) (any, bool, error) { return nil, false, nil })
		if exceeded, ok := errors.AsType[Exceeded](err); !ok || !strings.HasPrefix(string(exceeded), want) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}
