package decidetest

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
)

// Teller carries out one directive and returns its output.
type Teller func(cmd string, args []datadriven.CmdArg) (string, error)

// Tell carries out a directive and the directives on the lines below it. It returns an error if the file contains an
// invalid directive.
func (tell Teller) Tell(d *datadriven.TestData) (string, error) {
	out, err := tell(d.Cmd, d.CmdArgs)
	if err != nil {
		return "", fmt.Errorf("%s: %w", d.Cmd, err)
	}
	for line := range strings.Lines(d.Input) {
		more, err := tell.Line(line)
		if err != nil {
			return "", err
		}
		out += more
	}
	return out, nil
}

// Line carries out the directive in a line, unless the line is empty or a comment.
func (tell Teller) Line(line string) (string, error) {
	if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
		return "", nil
	}
	cmd, args, err := datadriven.ParseLine(line)
	if err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	out, err := tell(cmd, args)
	if err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	return out, nil
}

// Set carries out the set directive. The first argument is the target, and the others are the fields to set.
func Set(args []datadriven.CmdArg, setOne func(target, key, text string) error) error {
	if len(args) < 2 {
		return fmt.Errorf("name a target and at least one field, such as: set spec replicas=5")
	}
	for _, arg := range args[1:] {
		if err := setOne(args[0].Key, arg.Key, Value(arg)); err != nil {
			return err
		}
	}
	return nil
}

// Value returns the value of an argument; commas in parentheses are part of it.
func Value(arg datadriven.CmdArg) string { return strings.Join(arg.Vals, ", ") }

// Text returns a value, or "" for none.
func Text(value string) string {
	if value == "none" {
		return ""
	}
	return value
}

// ID returns the etcd ID in a value.
func ID(value string) (id decide.ID, err error) {
	if value = Text(value); value == "" {
		return 0, nil
	}
	return id, id.UnmarshalText([]byte(value))
}

// Ordinal returns the ordinal of the replica named in a value.
func Ordinal(cluster, value string) (int, error) {
	ordinal, ours := decide.State{Name: cluster}.Ordinal(value)
	if !ours {
		return 0, fmt.Errorf("%q is not a replica of %s: use %s-0, %s-1, …", value, cluster, cluster, cluster)
	}
	return ordinal, nil
}
