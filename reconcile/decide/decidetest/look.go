package decidetest

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/invariants"
)

// Look carries out a directive that only reads a state, and reports whether cmd is such a directive.
func Look(s decide.State, cmd string) (out string, looks bool) {
	switch cmd {
	case "state":
		return Table(s), true
	case "decide":
		return decision(s), true
	case "standing":
		return standing(s), true
	case "rules":
		return opinions(s), true
	case "invariants":
		return verdicts(s), true
	}
	return "", false
}

func decision(s decide.State) string {
	d := decide.Decide(s)
	var out strings.Builder
	fmt.Fprintf(&out, "%-6s %s", d.Verdict, d.Rule)
	if d.Action != nil {
		fmt.Fprintf(&out, "  %s", d.Action)
	}
	if d.Recheck != 0 {
		fmt.Fprintf(&out, "  (again in %s)", d.Recheck)
	}
	fmt.Fprintf(&out, "\n       %s\n", d.Message)
	for _, fault := range Faults(s) {
		fmt.Fprintf(&out, "!! %s\n", fault)
	}
	return out.String()
}

func standing(s decide.State) string {
	r := decide.RequiredRecord(s, "fresh")
	var out strings.Builder
	fmt.Fprintf(&out, "token=%s cluster=%s%s", r.Token, idOrNone(r.ClusterID), describeRemoved(s, r))
	if r.CA != "" || s.CA.Secret != "" {
		fmt.Fprintf(&out, " ca=%s", orNone(r.CA))
	}
	if r.Recovering() {
		fmt.Fprintf(&out, " recovering on %s of %s", r.Recovery.VolumeUID, s.ReplicaName(r.Recovery.Ordinal))
	}
	if r.VoidRecovery != "" {
		fmt.Fprintf(&out, " void=(%s)", r.VoidRecovery)
	}
	out.WriteByte('\n')
	for _, m := range r.Members {
		fmt.Fprintf(&out, "%s %s\n", s.ReplicaName(m.Ordinal), describeRecorded(m))
	}
	return out.String()
}

func opinions(s decide.State) string {
	var out strings.Builder
	for _, o := range decide.Opinions(s) {
		if !o.Speaks {
			fmt.Fprintf(&out, "-      %s\n", o.Rule)
			continue
		}
		fmt.Fprintf(&out, "%-6s %s: %s\n", o.Decision.Verdict, o.Rule, o.Decision.Message)
	}
	return out.String()
}

func verdicts(s decide.State) string {
	broken := strings.Join(invariants.Broken(s, decide.Decide(s)), "\n")
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
