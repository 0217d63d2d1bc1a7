package decide_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

const stories = "../../testdata/decide"

// TestStories runs the stories. If one fails, run "go test ./reconcile/decide -rewrite" and read the diff: it is right
// only if it matches the requirement in the story's first lines.
func TestStories(t *testing.T) {
	datadriven.Walk(t, stories, func(t *testing.T, path string) {
		w := &world{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return tell(t, w, d)
		})
	})
}

// tell carries out a directive and the directives on the lines below it. Invalid directives end the test; all other
// results are output.
func tell(t *testing.T, w *world, d *datadriven.TestData) string {
	if d.Cmd == "state" && d.Input != "" {
		w.State = decide.State{}
		if err := yaml.UnmarshalStrict([]byte(d.Input), &w.State); err != nil {
			d.Fatalf(t, "state: %v", err)
		}
		return decidetest.Table(w.State)
	}
	out, err := decidetest.Teller(w.tell).Tell(d)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return out
}

// tell carries out one directive, as described in package decidetest.
func (w *world) tell(cmd string, args []datadriven.CmdArg) (string, error) {
	switch cmd {
	case "cluster":
		return "", w.cluster(args)
	case "set":
		return "", decidetest.Set(args, w.setOne)
	case "add":
		return "", w.add(args)
	case "waited":
		return "", w.hasWaited(args)
	case "report":
		return w.report(len(args) > 0), nil
	case "remove":
		return "", w.remove(args)
	case "clock":
		return "", w.clock(args)
	case "act":
		return "", w.act()
	}
	out, looks := decidetest.Look(w.State, cmd)
	if !looks {
		return "", fmt.Errorf("unknown directive %q", cmd)
	}
	if cmd == "decide" && w.isNew {
		out = decidetest.Table(w.State) + out
		w.isNew = false
	}
	return out, nil
}

func (w *world) clock(args []datadriven.CmdArg) error {
	if len(args) != 1 {
		return fmt.Errorf("want one duration")
	}
	d, err := time.ParseDuration(strings.TrimPrefix(args[0].Key, "+"))
	w.Now = w.Now.Add(d)
	return err
}
