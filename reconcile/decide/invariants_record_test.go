package decide

import "testing"

// TestLoosened: every way in which a record can be worse than the one before it is seen.
func TestLoosened(t *testing.T) {
	sealed := Record{Token: "t", ClusterID: 1}.With(RecordedMember{Ordinal: 0, Mode: Sealed}).With(RecordedMember{Ordinal: 1, Mode: Founding})
	state := State{Name: "a", Record: sealed, Membership: Membership{Known: true, Members: []Member{{Name: "a-0", Started: true}, {Name: "a-1"}}}}
	started := state
	started.Membership.Members = []Member{{Name: "a-0", Started: true}, {Name: "a-1", Started: true}}
	unknown := started
	unknown.Membership.Known = false
	putBack := unknown
	putBack.Record.ClusterID, putBack.ReportedClusterID = 0, 1
	noStatus, bothKnow := putBack, unknown
	noStatus.ReportedClusterID, bothKnow.ReportedClusterID = 0, 1
	lost := State{Name: "a"}
	with := func(ordinal int, mode Mode) Record { return sealed.With(RecordedMember{Ordinal: ordinal, Mode: mode}) }
	under := func(r Record, ca string) Record { r.CA = ca; return r }
	trusting := func(recorded string, seen CA) State {
		s := state
		s.Record.CA, s.CA, s.Replicas = recorded, seen, []Replica{{Pod: PodReady}}
		return s
	}
	for name, c := range map[string]struct {
		state  State
		after  Record
		founds bool
		want   string
	}{
		"as it was":                   {state, sealed, false, ""},
		"a CA out of nothing":         {state, under(sealed, "CA1"), false, "names a CA that is not at hand"},
		"a CA forgotten":              {trusting("CA1", CA{}), sealed, false, "names a CA that is not at hand"},
		"another CA":                  {trusting("CA1", CA{Secret: "CA2"}), under(sealed, "CA2"), false, "changes the CA that pods trust"},
		"a new CA":                    {trusting("", CA{Secret: "CA2"}), under(sealed, "CA2"), false, "names a CA that etcd and pods do not confirm"},
		"a CA not for all":            {trusting("", CA{Secret: "CA2", Mounted: []string{"CA2", "CA1"}, Proven: "CA2"}), under(sealed, "CA2"), false, "names a CA that not all pods are given"},
		"a CA for all":                {trusting("", CA{Secret: "CA2", Mounted: []string{"CA2"}, Proven: "CA2"}), under(sealed, "CA2"), false, ""},
		"none":                        {state, Record{}, false, "leaves no record"},
		"no members":                  {state, Record{Token: "t", ClusterID: 1}, false, "leaves no record"},
		"another token":               {state, Record{Token: "u", ClusterID: 1, Members: sealed.Members}, false, "changes the token"},
		"another cluster":             {state, Record{Token: "t", ClusterID: 2, Members: sealed.Members}, false, "changes the cluster ID"},
		"no cluster":                  {state, Record{Token: "t", Members: sealed.Members}, false, "changes the cluster ID"},
		"a member dropped":            {state, Record{Token: "t", ClusterID: 1, Members: sealed.Members[:1]}, false, "a-1: is dropped"},
		"unsealed":                    {state, with(0, Founding), false, "a-0: is unsealed"},
		"unsealed to join":            {state, with(0, Joining), false, "a-0: is unsealed"},
		"sealed before it started":    {state, with(1, Sealed), false, "a-1: is sealed before it started"},
		"sealed":                      {started, with(1, Sealed), false, ""},
		"sealed on hearsay":           {unknown, with(1, Sealed), false, "a-1: is sealed before it started"},
		"sealed on no record":         {noStatus, with(1, Sealed), false, "a-1: is sealed before it started"},
		"no token":                    {lost, Record{Members: []RecordedMember{{Mode: Sealed}}}, false, "leaves no record"},
		"both know the ID":            {bothKnow, with(1, Sealed), false, "a-1: is sealed before it started"},
		"sealed as the status asks":   {putBack, with(1, Sealed), false, ""},
		"lost, and brought back":      {lost, Record{Token: "t", Members: []RecordedMember{{Mode: Sealed}}}, false, ""},
		"lost, and founded":           {lost, FoundingRecord("t", 1), false, "a-0 becomes Founding out of nothing"},
		"never there, and founded":    {lost, FoundingRecord("t", 1), true, ""},
		"never there, founded sealed": {lost, Record{Token: "t", Members: []RecordedMember{{Mode: Sealed}}}, true, "a-0 becomes Sealed out of nothing"},
	} {
		if got := loosened(c.state, c.after, c.founds); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
