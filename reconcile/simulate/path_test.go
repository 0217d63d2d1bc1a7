package simulate_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/simulate"
)

const paths = "../../testdata/converge"

// TestPaths walks the paths. If one fails, run "go test ./reconcile/simulate -rewrite" and read the
// diff.
func TestPaths(t *testing.T) {
	datadriven.Walk(t, paths, tellPath)
}

func tellPath(t *testing.T, file string) {
	r := &path{}
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		out, err := r.tell(d.Cmd, d.CmdArgs)
		for line := range strings.Lines(d.Input) {
			if err != nil {
				break
			}
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			var cmd, more string
			var args []datadriven.CmdArg
			if cmd, args, err = datadriven.ParseLine(line); err == nil {
				more, err = r.tell(cmd, args)
			}
			out += more
		}
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return out
	})
}

// path is the world that a story leads through.
type path struct {
	*simulate.World
	// late is what was decided and not carried out yet, and by what.
	late struct {
		seen   decide.State
		action decide.Action
	}
}

func (r *path) tell(cmd string, args []datadriven.CmdArg) (string, error) {
	switch cmd {
	case "cluster":
		// A new world with nothing in it; or, with formed, one in which passes have converged.
		//
		// Example:
		//	cluster a replicas=3 version=3.5.35 seed=7 formed
		return "", r.cluster(args)
	case "set":
		// Change what git declares.
		//
		// Example:
		//	set version=3.7.3 replicas=5
		return "", each(args, r.set)
	case "fault":
		// Let something happen to the world.
		//
		// Example:
		//	fault kill-pod=1 crash=1 lose-volume=1 delete-claim=1 strand=1 corrupt=1 hang=1 unhang=1 node-down=1 node-up=1
		//	fault mute=1 unmute=1 slow=1 fast=1 nospace=1 corrupt-alarm=1 apart=1 together=1 unready=1 ready-again=1
		//	fault differ=1 check-data nameless-alarm
		//	fault add-member=3 add-learner=3 remove-member=2 add-stranger
		//	fault delete=(ConfigMap a-members) change=(Service a) occupy=(Service a)
		//	fault put-ca put-back-ca
		//	fault delete-status put-back-record cut-network mend-network heal mislead=1 refuse-pods keep-claims refuse-handover forbid
		return "", each(args, r.fault)
	case "person":
		// Let somebody do something with kubectl or etcdctl.
		//
		// Example:
		//	person force-new-cluster=0 promote=3 scale=1 disarm=CORRUPT
		//	person delete-claims delete-orphaning=(StatefulSet a) restore=3 restore-object=(3 ConfigMap a-members)
		//	person unlist-claim=1 disown-claim=1 unlist-pod=1 register-node=1
		return "", each(args, r.person)
	case "decide":
		// Look and decide as a pass does, and do nothing yet.
		//
		// Example:
		//	decide
		return r.decideOnly(), nil
	case "do":
		// Do what was decided, however long ago.
		//
		// Example:
		//	do
		return r.doLate(), nil
	case "tick":
		// Let time pass without a pass.
		//
		// Example:
		//	tick 3
		n, err := strconv.Atoi(args[0].Key)
		for range n {
			r.Tick()
		}
		return "", err
	case "pass":
		// Run passes, a tick after each, whatever they say; the first dies after that many writes,
		// or the write after so many fails.
		//
		// Example:
		//	pass 2 crash=3
		//	pass 1 fail=0
		//	pass 1 missing-claim=1 (or missing-pod=1 old-kubernetes=2 old-etcd=2): what the first sees is not all, or old
		return r.passes(args)
	case "converge":
		// Run passes until one says Done or Block. With crash=after-each, do so again for every
		// write: the pass dies after it, or the write after it fails, and the end must be the same.
		//
		// Example:
		//	converge max=40 crash=after-each
		return r.converge(args)
	case "settle":
		// Heal what can be healed, have git ask for something good, and run passes until one says
		// Done or Block.
		//
		// Example:
		//	settle
		r.makeGood()
		return r.converge([]datadriven.CmdArg{{Key: "max", Vals: []string{strconv.Itoa(passesToSettle)}}})
	case "state":
		// Print the replicas.
		//
		// Example:
		//	state
		return summary(r.Observe()), nil
	}
	return "", fmt.Errorf("unknown directive %q", cmd)
}

func each(args []datadriven.CmdArg, do func(key, value string) error) error {
	for _, arg := range args {
		if err := do(arg.Key, strings.Join(arg.Vals, ", ")); err != nil {
			return err
		}
	}
	return nil
}

func declared(replicas int) decide.Declared {
	return decide.Declared{Replicas: replicas, Version: "3.6.16", Lifecycle: "Running", SpecHash: "h1"}
}

func (r *path) cluster(args []datadriven.CmdArg) (err error) {
	replicas, seed, formed, version := 3, 0, false, "3.6.16"
	for _, arg := range args[1:] {
		switch arg.Key {
		case "replicas":
			replicas, err = strconv.Atoi(arg.Vals[0])
		case "seed":
			seed, err = strconv.Atoi(arg.Vals[0])
		case "version":
			version = arg.Vals[0]
		case "formed":
			formed = true
		}
	}
	r.World = simulate.New(args[0].Key, declared(replicas), uint64(seed))
	r.Remember(12)
	r.Declared.Version = version
	r.Unpullable, r.Crashing = "3.6.99", "crashing"
	if formed {
		r.Converge(patienceOfTests)
	}
	return err
}

func (r *path) set(key, value string) (err error) {
	switch key {
	case "replicas":
		r.Declared.Replicas, err = strconv.Atoi(value)
	case "version":
		r.Declared.Version = value
	case "hash":
		r.Declared.SpecHash = value
	case "lifecycle":
		r.Declared.Lifecycle = decide.Lifecycle(value)
	case "retention":
		r.Declared.Retention = decide.Retention(value)
	case "replace-after":
		r.Declared.ReplaceAfter, err = time.ParseDuration(value)
	case "orphaned":
		r.Declared.Orphaned = value
	case "renamed-from":
		r.Declared.RenamedFrom = value
	case "suspended":
		r.Declared.Suspended, err = strconv.ParseBool(value)
	case "lock":
		r.LockHolder = value
	default:
		err = fmt.Errorf("the declaration has no %s", key)
	}
	return err
}

func (r *path) fault(key, value string) error {
	byOrdinal := map[string]func(int){
		"kill-pod": r.KillPod, "crash": r.Crash, "lose-volume": r.LoseVolume, "delete-claim": r.DeleteVolume, "replace-claim": r.ReplaceClaim, "strand": r.Strand, "corrupt": r.Corrupt, "differ": r.Differ,
		"node-down": func(n int) { r.NodeDown(n, true) }, "node-up": func(n int) { r.NodeDown(n, false) },
		"hang": func(n int) { r.Hang(n, true) }, "unhang": func(n int) { r.Hang(n, false) },
		"mute": func(n int) { r.Mute(n, true) }, "unmute": func(n int) { r.Mute(n, false) },
		"apart": func(n int) { r.Apart(n, true) }, "together": func(n int) { r.Apart(n, false) },
		"unready": func(n int) { r.Unready(n, true) }, "ready-again": func(n int) { r.Unready(n, false) },
		"slow": func(n int) { r.Slow(n, true) }, "fast": func(n int) { r.Slow(n, false) },
		"nospace": func(n int) { r.RaiseAlarm(n, "NOSPACE") }, "corrupt-alarm": func(n int) { r.RaiseAlarm(n, "CORRUPT") }, "remove-member": r.RemoveMember,
		"mislead": func(n int) { r.Mislead(n, true) }, "add-member": r.AddMember, "add-learner": r.AddLearner,
	}
	byName := map[string]func(string){"delete": r.Delete, "change": r.Change, "occupy": r.Occupy}
	plain := map[string]func(){
		"delete-status": r.DeleteStatus, "put-back-record": r.PutBackRecord, "add-stranger": r.AddStranger, "heal": r.Heal,
		"wear-certificates": r.WearCertificates,
		"put-ca":            r.PutCA, "put-back-ca": r.PutBackCA,
		"refuse-pods": func() { r.RefusePods(true) }, "keep-claims": func() { r.KeepClaims(true) }, "refuse-handover": func() { r.RefuseTransfer(true) }, "forbid": func() { r.Forbid(true) },
		"nameless-alarm": r.RaiseNameless, "check-data": func() { r.ChecksData = true },
		"cut-network": func() { r.CutNetwork(true) }, "mend-network": func() { r.CutNetwork(false) },
	}
	switch {
	case byOrdinal[key] != nil:
		n, err := strconv.Atoi(value)
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
		if most, err = strconv.Atoi(arg.Vals[0]); err != nil {
			return "", err
		}
		switch arg.Key {
		case "fail":
			pass = r.PassFailing
		case "missing-claim", "missing-pod", "old-kubernetes", "old-etcd":
			see := sights[arg.Key](most)
			pass, most = func(int) (decide.Decision, []string) { return r.PassSeeing(see) }, simulate.NoCrash
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

// print prints a line for each pass; equal ones are one line.
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
