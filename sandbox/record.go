//go:build linux

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"quorate.dev/quorate/sandbox/layout"
)

// record is the state that a sandbox keeps between commands.
type record struct {
	Nodes int // number of nodes
	Port  int // the API server's port on the host's 127.0.0.1
}

func (r record) nodes() []layout.Node {
	var all []layout.Node
	for n := 1; n <= r.Nodes; n++ {
		all = append(all, layout.Node(n))
	}
	return all
}

func (s *Sandbox) recordPath() string { return filepath.Join(s.Dir(), "sandbox.json") }

// recorded reads the record. The record is zero if the sandbox has never been up.
func (s *Sandbox) recorded() (record, error) {
	data, err := os.ReadFile(s.recordPath())
	if errors.Is(err, os.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read the record of sandbox %s: %w", s.Name, err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, fmt.Errorf("decode %s: %w", s.recordPath(), err)
	}
	return r, nil
}

func (s *Sandbox) remember(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record of sandbox %s: %w", s.Name, err)
	}
	return replaceFile(s.recordPath(), append(data, '\n'))
}

// with returns the record with the requested number of nodes. If nodes is 0, it keeps the current number, or 1 for a
// new sandbox.
func (r record) with(nodes int) (record, error) {
	if nodes < 0 || nodes > layout.MaxNodes {
		return record{}, fmt.Errorf("the number of nodes must be between 1 and %d, not %d", layout.MaxNodes, nodes)
	}
	if nodes != 0 && nodes < r.Nodes {
		return record{}, fmt.Errorf("the sandbox has %d nodes: to reduce the number, run sandbox down first", r.Nodes)
	}
	r.Nodes = max(1, nodes, r.Nodes)
	return r, nil
}
