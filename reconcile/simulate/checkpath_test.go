package simulate_test

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/simulate"
)

// patienceOfTests is the number of passes within which every path must end.
const patienceOfTests = 100

// checkPath walks the path of a copy of the world and returns the first problem: a faulty decision, a violation, a path
// that does not end, or an end that is not stable.
func checkPath(start *simulate.World, most int) []string {
	w := start.Clone()
	for range most {
		if faults := decidetest.Faults(w.Observe()); len(faults) > 0 {
			return faults
		}
		d, writes := w.Pass(simulate.NoCrash)
		switch {
		case d.Verdict == decide.Act && len(writes) == 0:
			return []string{fmt.Sprintf("%s finds nothing to do", d)}
		case d.Verdict == decide.Done || d.Verdict == decide.Block:
			return append(lasts(w, d), w.Violations()...)
		}
		w.Tick()
	}
	return []string{fmt.Sprintf("no end after %d passes: %s", most, decide.Decide(w.Observe()))}
}

// checkEnd walks the path to its end and returns the violations, or a message if the path does not end.
func checkEnd(w *simulate.World, most int) []string {
	steps := w.Converge(most)
	if last := steps[len(steps)-1].Decision; last.Verdict != decide.Done && last.Verdict != decide.Block {
		return []string{fmt.Sprintf("no end after %d passes: %s", most, last)}
	}
	return w.Violations()
}

// lasts checks that the end of a path is stable.
func lasts(w *simulate.World, end decide.Decision) []string {
	for range 5 {
		w.Tick()
		d, _ := w.Pass(simulate.NoCrash)
		if d.Verdict != end.Verdict || d.Rule != end.Rule {
			return []string{fmt.Sprintf("%s is not stable: followed by %s", end, d)}
		}
	}
	return nil
}

// crashAfterEach walks the path twice for each of its writes: once with a pass that dies right after the write, and
// once with a pass in which the next write fails. It compares the ends of all paths.
func crashAfterEach(start *simulate.World, most int) string {
	straight := start.Clone()
	steps := straight.Converge(most)
	want := ending(straight)
	var out strings.Builder
	var violations []string
	here, writes := start.Clone(), 0 // before each pass, and the writes until then
	for pass, step := range steps {
		for n := range len(step.Writes) + 1 {
			if n == 0 && pass > 0 { // the same as after the last write of the previous pass
				continue
			}
			for what, converge := range map[string]func(*simulate.World, int, int) []simulate.Step{
				"a crash after": (*simulate.World).ConvergeDying, "a failure after": (*simulate.World).ConvergeFailing,
			} {
				w := here.Clone()
				converge(w, most+10-pass, n)
				if got := ending(w); got != want {
					fmt.Fprintf(&out, "!! %s write %d ends in\n%sinstead of\n%s", what, writes+n, got, want)
				}
				violations = append(violations, w.Violations()...)
			}
		}
		here.Pass(simulate.NoCrash)
		here.Tick()
		writes += len(step.Writes)
	}
	out.WriteString(marks(violations))
	if out.Len() == 0 {
		return fmt.Sprintf("the same end after a crash or a failure before the first and after each of %d writes\n", writes)
	}
	return out.String()
}

// ending describes the state of a world at the end of its path, without random names.
func ending(w *simulate.World) string {
	s := w.Observe()
	return decide.Decide(s).String() + "\n" + summary(s)
}

// summary prints the replicas, members and drift of a state without the IDs that differ between worlds.
func summary(s decide.State) string {
	var out strings.Builder
	for _, r := range s.Replicas {
		recorded := "not on record"
		if m, found := s.Record.Member(r.Ordinal); found {
			recorded = string(m.Mode)
			if m.VolumeUID != "" && m.VolumeUID != r.VolumeUID {
				recorded += " on another volume"
			}
		}
		if r.VolumeTerminating {
			recorded += ", volume terminating"
		}
		fmt.Fprintf(&out, "%s pod=%s %s", s.ReplicaName(r.Ordinal), strings.TrimSpace(fmt.Sprint(r.Pod, " ", r.PodVersion, " ", r.PodSpecHash)), recorded)
		if r.PodMessage != "" {
			fmt.Fprintf(&out, ": %s", r.PodMessage)
		}
		out.WriteString("\n")
	}
	for _, m := range s.MembersInOrder() {
		fmt.Fprintf(&out, "member %s started=%t answers=%t learner=%t", m.Name, m.Started, m.Answers, m.Learner)
		if len(m.Alarms) > 0 {
			fmt.Fprintf(&out, " alarms=%s", strings.Join(m.AlarmNames(), ","))
		}
		out.WriteString("\n")
	}
	for _, drift := range s.Objects.Drift {
		fmt.Fprintf(&out, "%s\n", drift)
	}
	fmt.Fprintf(&out, "status knows the ID: %t; record: %t\n", s.ReportedClusterID != 0, s.Record.ClusterID != 0)
	return out.String()
}
