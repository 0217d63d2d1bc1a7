package simulate_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/simulate"
)

const paths = "../../testdata/converge"

// TestPaths walks the paths in testdata/converge. If the output of a path has changed, run
// "go test ./reconcile/simulate -rewrite" and read the diff.
func TestPaths(t *testing.T) {
	datadriven.Walk(t, paths, tellPath)
}

func tellPath(t *testing.T, file string) {
	r := &path{}
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		out, err := decidetest.Teller(r.tell).Tell(d)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return out
	})
}

// path is the world of a path test.
type path struct {
	*simulate.World
	// late is an action that was decided but not executed yet, and the state from which it was decided.
	late struct {
		seen   decide.State
		action decide.Action
	}
}

// tell executes one directive. Package decidetest describes the directives.
func (r *path) tell(cmd string, args []datadriven.CmdArg) (string, error) {
	switch cmd {
	case "cluster":
		return "", r.cluster(args)
	case "set":
		return "", decidetest.Set(args, r.set)
	case "fault":
		return "", each(args, r.fault)
	case "person":
		return "", each(args, r.person)
	case "act":
		return r.act()
	case "tick":
		return "", r.ticks(args)
	case "pass":
		return r.passes(args)
	case "converge":
		return r.converge(args)
	case "road":
		return forecast.Of(r.Observe()).Text(""), nil
	case "settle":
		r.makeGood()
		return r.converge([]datadriven.CmdArg{{Key: "max", Vals: []string{strconv.Itoa(passesToSettle)}}})
	}
	s := r.Observe()
	out, looks := decidetest.Look(s, cmd)
	if !looks {
		return "", fmt.Errorf("unknown directive %q", cmd)
	}
	if cmd == "decide" {
		r.late.seen, r.late.action = s, decide.Decide(s).Action
	}
	return out, nil
}

func each(args []datadriven.CmdArg, do func(key, value string) error) error {
	for _, arg := range args {
		if err := do(arg.Key, decidetest.Value(arg)); err != nil {
			return err
		}
	}
	return nil
}

func (r *path) cluster(args []datadriven.CmdArg) error {
	b, err := decidetest.Begin(args)
	if err != nil {
		return err
	}
	r.World = simulate.New(b.Name, b.Declared, uint64(b.Seed))
	r.Together = b.Together
	r.Remember(12)
	r.Unpullable, r.Crashing = "3.6.99", "crashing"
	switch b.Phase {
	case decidetest.Nothing:
	case decidetest.Founded:
		r.Pass(simulate.NoCrash)
	case decidetest.Formed:
		r.Converge(patienceOfTests)
	}
	return nil
}

func (r *path) set(target, key, text string) error {
	switch {
	case target == "spec":
		return decidetest.SetSpec(&r.Declared, key, text)
	case target == "lock" && key == "holder":
		r.LockHolder = decidetest.Text(text)
		return nil
	}
	return fmt.Errorf("on a path, %s %s comes about by a fault, a person or a pass", target, key)
}

func (r *path) ticks(args []datadriven.CmdArg) error {
	if len(args) != 1 {
		return fmt.Errorf("want one number of ticks")
	}
	n, err := strconv.Atoi(args[0].Key)
	for range n {
		r.Tick()
	}
	return err
}

func (r *path) fault(key, value string) error {
	byOrdinal := map[string]func(int){
		"kill-pod": r.KillPod, "force-delete": r.ForceDelete, "crash": r.Crash, "lose-volume": r.LoseVolume, "delete-claim": r.DeleteVolume, "replace-claim": r.ReplaceClaim, "recreate-claim": r.RecreateClaim, "old-data": r.LeaveOldData, "strand": r.Strand, "corrupt": r.Corrupt, "differ": r.Differ,
		"node-down": func(n int) { r.NodeDown(n, true) }, "node-up": func(n int) { r.NodeDown(n, false) },
		"hang": func(n int) { r.Hang(n, true) }, "unhang": func(n int) { r.Hang(n, false) },
		"mute": func(n int) { r.Mute(n, true) }, "unmute": func(n int) { r.Mute(n, false) },
		"apart": func(n int) { r.Apart(n, true) }, "together": func(n int) { r.Apart(n, false) },
		"unready": func(n int) { r.Unready(n, true) }, "ready-again": func(n int) { r.Unready(n, false) },
		"slow": func(n int) { r.Slow(n, true) }, "fast": func(n int) { r.Slow(n, false) },
		"nospace": func(n int) { r.RaiseAlarm(n, "NOSPACE") }, "corrupt-alarm": func(n int) { r.RaiseAlarm(n, "CORRUPT") }, "remove-member": r.RemoveMember, "fragment": r.Fragment, "keep-fragmented": r.KeepFragmented,
		"mislead": func(n int) { r.Mislead(n, true) }, "unmislead": func(n int) { r.Mislead(n, false) }, "lie": func(n int) { r.Lie(n, true) }, "unlie": func(n int) { r.Lie(n, false) }, "add-member": r.AddMember, "add-learner": r.AddLearner,
	}
	byName := map[string]func(string){"delete": r.Delete, "change": r.Change, "occupy": r.Occupy, "rewrite": r.Rewrite, "rewrite-unsafely": r.RewriteUnsafely}
	plain := map[string]func(){
		"delete-status": r.DeleteStatus, "put-back-record": r.PutBackRecord, "add-stranger": r.AddStranger, "heal": r.Heal,
		"wear-certificates": r.WearCertificates,
		"refuse-backups":    func() { r.RefuseBackups(true) }, "forget-backups": r.ForgetBackups, "schedule-backup": r.ScheduleBackup,
		"refuse-restores": func() { r.RefuseRestores(true) }, "start-elsewhere": r.StartElsewhere, "delete-restore": r.DeleteRestore,
		"refuse-recoveries": func() { r.RefuseRecoveries(true) }, "delete-recovery": r.DeleteRecovery,
		"stop-rewriting": r.StopRewriting, "put-ca": r.PutCA, "put-back-ca": r.PutBackCA,
		"refuse-pods": func() { r.RefusePods(true) }, "keep-claims": func() { r.KeepClaims(true) }, "refuse-handover": func() { r.RefuseTransfer(true) }, "forbid": func() { r.Forbid(true) }, "drop-annotations": func() { r.DropAnnotations(true) }, "keep-annotations": func() { r.DropAnnotations(false) },
		"nameless-alarm": r.RaiseNameless, "check-data": func() { r.ChecksData = true }, "fill-database": r.FillDatabase, "compact": r.Compact,
		"cut-network": func() { r.CutNetwork(true) }, "mend-network": func() { r.CutNetwork(false) },
	}
	byNumber := map[string]func(int){
		"adopt": func(n int) { r.Adopt(n, false) }, "adopt-namesakes": func(n int) { r.Adopt(n, true) },
		"guest-down": func(i int) { r.GuestDown(i, true) }, "guest-up": func(i int) { r.GuestDown(i, false) },
		"remove-guest": r.RemoveGuest, "rejoin-guest": r.RejoinGuest, "release": r.Release,
	}
	switch {
	case byNumber[key] != nil:
		n, err := strconv.Atoi(value)
		if err == nil {
			byNumber[key](n)
		}
		return err
	case byOrdinal[key] != nil:
		n, err := decidetest.Ordinal(r.Name(), value)
		if err == nil {
			byOrdinal[key](n)
		}
		return err
	case byName[key] != nil:
		byName[key](value)
	case plain[key] != nil:
		plain[key]()
	default:
		return fmt.Errorf("unknown fault %q", key)
	}
	return nil
}

func (r *path) passes(args []datadriven.CmdArg) (string, error) {
	n, err := strconv.Atoi(args[0].Key)
	if err != nil {
		return "", err
	}
	pass, most := r.Pass, simulate.NoCrash
	for _, arg := range args[1:] {
		switch value := decidetest.Value(arg); arg.Key {
		case "crash":
			most, err = strconv.Atoi(value)
		case "fail":
			pass = r.PassFailing
			most, err = strconv.Atoi(value)
		default:
			var see simulate.View
			see, err = r.sight(arg.Key, value)
			pass = func(int) (decide.Decision, []string) { return r.PassWithView(see) }
		}
		if err != nil {
			return "", err
		}
	}
	var steps []simulate.Step
	var faults []string
	for range n {
		faults = append(faults, decidetest.Faults(r.Observe())...)
		d, writes := pass(most)
		steps = append(steps, simulate.Step{Decision: d, Writes: writes, Died: len(writes) == most})
		pass, most = r.Pass, simulate.NoCrash
		r.Tick()
	}
	return print(steps) + marks(append(faults, r.Violations()...)), nil
}

func (r *path) converge(args []datadriven.CmdArg) (string, error) {
	most, crashes := patienceOfTests, false
	for _, arg := range args {
		switch arg.Key {
		case "max":
			n, err := strconv.Atoi(arg.Vals[0])
			if err != nil {
				return "", err
			}
			most = n
		case "crash":
			crashes = true
		default:
			return "", fmt.Errorf("converge has no %s", arg.Key)
		}
	}
	start := r.Clone()
	steps := r.Converge(most)
	out := print(steps) + marks(checkPath(start, most))
	if crashes {
		out += crashAfterEach(start, most)
	}
	return out, nil
}

// print returns a line for each pass. Consecutive equal lines are merged.
func print(steps []simulate.Step) string {
	var out strings.Builder
	for first := 0; first < len(steps); {
		last := first
		for last+1 < len(steps) && line(steps[last+1]) == line(steps[first]) {
			last++
		}
		span := strconv.Itoa(first + 1)
		if last > first {
			span += fmt.Sprintf("-%d", last+1)
		}
		fmt.Fprintf(&out, "%-5s %s\n", span, line(steps[first]))
		first = last + 1
	}
	return out.String()
}

func line(s simulate.Step) string {
	d := s.Decision
	text := fmt.Sprintf("%-5s %-18s %s", d.Verdict, d.Rule, d.Message)
	if d.Action != nil {
		text = fmt.Sprintf("%-5s %-18s %s; %d written", d.Verdict, d.Rule, d.Action, len(s.Writes))
	}
	if s.Died {
		text += ", then the pass dies"
	}
	return text
}

func marks(faults []string) string {
	var out strings.Builder
	for _, fault := range slices.Compact(slices.Sorted(slices.Values(faults))) {
		fmt.Fprintf(&out, "!! %s\n", fault)
	}
	return out.String()
}
