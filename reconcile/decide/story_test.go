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
	"quorate.dev/quorate/reconcile/decide/invariants"
)

const stories = "../../testdata/decide"

// TestStories runs the stories. If one fails, run "go test ./reconcile/decide -rewrite" and read
// the diff: it is right only if it is what the story's first lines ask for.
func TestStories(t *testing.T) {
	datadriven.Walk(t, stories, func(t *testing.T, path string) {
		w := &world{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return tell(t, w, d)
		})
	})
}

// tell carries out a directive and those on the lines below it. Bad directives end the test;
// everything else is output.
func tell(t *testing.T, w *world, d *datadriven.TestData) string {
	if d.Cmd == "state" && d.Input != "" {
		w.State = decide.State{}
		if err := yaml.UnmarshalStrict([]byte(d.Input), &w.State); err != nil {
			d.Fatalf(t, "state: %v", err)
		}
		return w.table()
	}
	out, err := w.tell(d.Cmd, d.CmdArgs)
	if err != nil {
		d.Fatalf(t, "%s: %v", d.Cmd, err)
	}
	for line := range strings.Lines(d.Input) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		cmd, args, err := datadriven.ParseLine(line)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		more, err := w.tell(cmd, args)
		if err != nil {
			d.Fatalf(t, "%s: %v", line, err)
		}
		out += more
	}
	return out
}

// tell carries out one directive.
func (w *world) tell(cmd string, args []datadriven.CmdArg) (string, error) {
	switch cmd {
	case "cluster":
		// A new world: nothing is there, the objects are founded, or (unless told otherwise) it has
		// formed and is healthy. The next decision is printed under the table of the state it is
		// about.
		//
		// Example:
		//	cluster a replicas=3 version=3.6.16 phase=nothing|founded|formed
		return "", w.cluster(args)
	case "set":
		// Change a replica and its member, what git declares, or what is known of etcd, the record,
		// the status, the objects.
		//
		// Example:
		//	set a-1 pod=Failing since=3m message=(exit code 1) volume=v9 token=t9 mode=Founding
		//	set a-1 pod=Starting started=20s
		//	set a-1 pod=Terminating going=1m
		//	set a-1 pod=Absent refused=(exceeded quota)
		//	set etcd forbidden=(pods/portforward is forbidden)
		//	set a-1 made=3.6.16/h1 crashes=4 stranded=(its node is gone) removed=v1
		//	set a-1 etcd=answers|silent|unstarted|added|none learner=true alarms=(NOSPACE) id=b1 cluster=c2
		//	set a-1 runs=3.6.16 storage=3.6 applied=100 silent-for=10m disagrees=(lists a-3 as a learner)
		//	set a-1 hash=5c0ffee0@120/100 stopped-by-check=true
		//	set spec replicas=5 version=3.7.3 hash=h2 lifecycle=Stopped suspended=true problem=(storage: shrinks)
		//	set spec retention=Delete replaceAfter=10m orphaned=(main@sha1:1 declares it no longer) renamedFrom=(b/old)
		//	set etcd known=false why=(no answer within 2s) cluster=c2 leader=a-1 downgrade=3.6
		//	set record cluster=c2 token=t2 log=3.5 ca=none|CA1
		//	set ca secret=CA1 mounted=(CA1, CA2) proven=CA1
		//	set CA ends=3000
		//	set peer|server|client ends=99
		//	set status cluster=c2 version=3.6.16
		//	set objects runs=none|3.6.16/h1 differs=true replicas=0
		//	set lock holder=(process 7 on b)
		return "", w.set(args)
	case "add":
		// Add a finding about an object, a member that is no replica of ours, or an alarm of one
		// that is gone.
		//
		// Example:
		//	add alarm=(NOSPACE of d1)
		//	add drift|remaining|foreign|relabelled|terminating|irreplaceable=(Service a-client: missing)
		//	add member name=stranger id=d1 silent
		return "", w.add(args)
	case "waited":
		// Earlier passes have waited for something, since so long, and one has last written it down
		// so long ago.
		//
		// Example:
		//	waited WaitForMembers for=(a-1,a-2) since=31m seen=5m
		return "", w.hasWaited(args)
	case "report":
		// Write down what the decision waits for, as the status does after a pass that has changed
		// nothing, or with changed, something.
		//
		// Example:
		//	report changed
		return w.report(len(args) > 0), nil
	case "remove":
		// Remove a replica with its member, or everything of a kind.
		//
		// Example:
		//	remove a-2
		//	remove record|status|pods|volumes|members|drift|remaining|terminating|foreign|relabelled|irreplaceable
		return "", w.remove(args)
	case "clock":
		// Let time pass.
		//
		// Example:
		//	clock +2m
		return "", w.clock(args)
	case "state":
		// Print the state as a table; or, with one below in YAML, as "quorate plan -o state" prints
		// it, take that.
		//
		// Example:
		//	state
		return w.table(), nil
	case "decide":
		// Decide, and hold the decision against the invariants.
		//
		// Example:
		//	decide
		return w.decide(), nil
	case "act":
		// Carry out the action that is decided, and what Kubernetes and etcd do in its wake, as far
		// as the state shows it: the record is written, the objects are right, pods and volumes
		// come and go. A new member is only added; set lets it start.
		//
		// Example:
		//	act
		return "", w.act()
	case "standing":
		// Print the record that the objects must carry as things stand.
		//
		// Example:
		//	standing
		return w.standing(), nil
	case "rules":
		// Print what every rule says, also those after the first that speaks.
		//
		// Example:
		//	rules
		return w.rules(), nil
	case "invariants":
		// Print the invariants, and which the decision breaks.
		//
		// Example:
		//	invariants
		return w.invariants(), nil
	}
	return "", fmt.Errorf("unknown directive %q", cmd)
}

func (w *world) decide() string {
	d := decide.Decide(w.State)
	var out strings.Builder
	if w.isNew {
		out.WriteString(w.table())
		w.isNew = false
	}
	fmt.Fprintf(&out, "%-6s %s", d.Verdict, d.Rule)
	if d.Action != nil {
		fmt.Fprintf(&out, "  %s", d.Action)
	}
	if d.Recheck != 0 {
		fmt.Fprintf(&out, "  (again in %s)", d.Recheck)
	}
	fmt.Fprintf(&out, "\n       %s\n", d.Message)
	for _, fault := range decidetest.Faults(w.State) {
		fmt.Fprintf(&out, "!! %s\n", fault)
	}
	return out.String()
}

func (w *world) standing() string {
	r := decide.StandingRecord(w.State, "fresh")
	var out strings.Builder
	fmt.Fprintf(&out, "token=%s cluster=%s%s", r.Token, id(r.ClusterID), w.describeRemoved(r))
	if r.CA != "" || w.CA.Secret != "" {
		fmt.Fprintf(&out, " ca=%s", orNone(r.CA))
	}
	out.WriteByte('\n')
	for _, m := range r.Members {
		fmt.Fprintf(&out, "%s %s\n", w.ReplicaName(m.Ordinal), describeRecorded(m))
	}
	return out.String()
}

func (w *world) rules() string {
	var out strings.Builder
	for _, o := range decide.Opinions(w.State) {
		if !o.Speaks {
			fmt.Fprintf(&out, "-      %s\n", o.Rule)
			continue
		}
		fmt.Fprintf(&out, "%-6s %s: %s\n", o.Decision.Verdict, o.Rule, o.Decision.Message)
	}
	return out.String()
}

func (w *world) invariants() string {
	broken := strings.Join(invariants.Broken(w.State, decide.Decide(w.State)), "\n")
	var out strings.Builder
	for _, l := range invariants.All() {
		verdict := "holds "
		if strings.Contains("\n"+broken, "\n"+l.Name+": ") {
			verdict = "BROKEN"
		}
		fmt.Fprintf(&out, "%s %s\n", verdict, l.Name)
	}
	return out.String()
}

func (w *world) clock(args []datadriven.CmdArg) error {
	if len(args) != 1 {
		return fmt.Errorf("want one duration")
	}
	d, err := time.ParseDuration(strings.TrimPrefix(args[0].Key, "+"))
	w.Now = w.Now.Add(d)
	return err
}

// args parses the arguments of a directive.
func args(t *testing.T, directive string) []datadriven.CmdArg {
	t.Helper()
	_, args, err := datadriven.ParseLine(directive)
	if err != nil {
		t.Fatal(err)
	}
	return args
}
