package invariants

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestLoosened checks that every way to weaken a record is detected.
func TestLoosened(t *testing.T) {
	sealed := decide.Record{Token: "t", ClusterID: 1}.With(decide.RecordedMember{Ordinal: 0, Mode: decide.Sealed}).With(decide.RecordedMember{Ordinal: 1, Mode: decide.Founding})
	state := decide.State{Name: "a", Record: sealed, Membership: decide.Membership{Known: true, Members: []decide.Member{{Name: "a-0", Started: true}, {Name: "a-1"}}}}
	started := state
	started.Membership.Members = []decide.Member{{Name: "a-0", Started: true}, {Name: "a-1", Started: true}}
	unknown := started
	unknown.Membership.Known = false
	putBack := unknown
	putBack.Record.ClusterID, putBack.ReportedClusterID = 0, 1
	noStatus, bothKnow := putBack, unknown
	noStatus.ReportedClusterID, bothKnow.ReportedClusterID = 0, 1
	lost := decide.State{Name: "a"}
	with := func(ordinal int, mode decide.Mode) decide.Record {
		return sealed.With(decide.RecordedMember{Ordinal: ordinal, Mode: mode})
	}
	again := decide.Record{Token: "t", Members: []decide.RecordedMember{{Mode: decide.Sealed}}}
	unseen := decide.State{Name: "a", Record: again, Replicas: []decide.Replica{{Ordinal: 1, Pod: decide.PodAbsent, VolumeUID: "v1"}}}
	unseenListed := unseen
	unseenListed.Membership.Known = true
	marked := unknown
	marked.Replicas = []decide.Replica{{Ordinal: 1, VolumeUID: "v1", LostCluster: 9}}
	heard := marked
	heard.Membership.Known = true
	proven, superseded := marked, marked
	proven.Record = proven.Record.With(decide.RecordedMember{Ordinal: 1, Mode: decide.Sealed, VolumeUID: "v1"})
	superseded.Record = proven.Record
	superseded.Replicas = []decide.Replica{{Ordinal: 1, VolumeUID: "v1", LostCluster: 1}}
	kept := decide.Record{Token: "t", ClusterID: 1, Members: sealed.Members[:1], Removed: []decide.RemovedMember{{Ordinal: 1, VolumeUID: "v1", LostCluster: 9}}}
	together := state
	together.Record.JoinedTogether = true
	under := func(r decide.Record, ca string) decide.Record { r.CA = ca; return r }
	trusting := func(recorded string, seen decide.CA) decide.State {
		s := state
		s.Record.CA, s.CA, s.Replicas = recorded, seen, []decide.Replica{{Pod: decide.PodReady}}
		return s
	}
	for name, c := range map[string]struct {
		state  decide.State
		after  decide.Record
		founds bool
		want   string
	}{
		"as it was":                    {state, sealed, false, ""},
		"joined together, forgotten":   {together, sealed, false, "forgets that two members joined together"},
		"a CA out of nothing":          {state, under(sealed, "CA1"), false, "names a CA that is not in the Secret"},
		"a CA forgotten":               {trusting("CA1", decide.CA{}), sealed, false, "names a CA that is not in the Secret"},
		"another CA":                   {trusting("CA1", decide.CA{Secret: "CA2"}), under(sealed, "CA2"), false, "changes the CA that pods trust"},
		"a new CA":                     {trusting("", decide.CA{Secret: "CA2"}), under(sealed, "CA2"), false, "names a CA that etcd and pods do not confirm"},
		"a CA not for all":             {trusting("", decide.CA{Secret: "CA2", Mounted: []string{"CA2", "CA1"}, Proven: "CA2"}), under(sealed, "CA2"), false, "names a CA that some pods do not mount"},
		"a CA for all":                 {trusting("", decide.CA{Secret: "CA2", Mounted: []string{"CA2"}, Proven: "CA2"}), under(sealed, "CA2"), false, ""},
		"none":                         {state, decide.Record{}, false, "the record is empty"},
		"no members":                   {state, decide.Record{Token: "t", ClusterID: 1}, false, "the record is empty"},
		"another token":                {state, decide.Record{Token: "u", ClusterID: 1, Members: sealed.Members}, false, "changes the token"},
		"another cluster":              {state, decide.Record{Token: "t", ClusterID: 2, Members: sealed.Members}, false, "changes the cluster ID"},
		"no cluster":                   {state, decide.Record{Token: "t", Members: sealed.Members}, false, "changes the cluster ID"},
		"a member dropped":             {state, decide.Record{Token: "t", ClusterID: 1, Members: sealed.Members[:1]}, false, "a-1: is removed from the record"},
		"kept of a lost cluster":       {marked, kept, false, ""},
		"kept although it is listed":   {heard, kept, false, "a-1: is removed from the record"},
		"kept although it is proven":   {proven, kept, false, "a-1: is removed from the record"},
		"kept of what was put back":    {superseded, kept, false, ""},
		"marked, and not kept":         {marked, decide.Record{Token: "t", ClusterID: 1, Members: sealed.Members[:1]}, false, "a-1: is removed from the record"},
		"unsealed":                     {state, with(0, decide.Founding), false, "a-0: is unsealed"},
		"unsealed to join":             {state, with(0, decide.Joining), false, "a-0: is unsealed"},
		"sealed before it started":     {state, with(1, decide.Sealed), false, "a-1: is sealed before it has started"},
		"sealed":                       {started, with(1, decide.Sealed), false, ""},
		"sealed on hearsay":            {unknown, with(1, decide.Sealed), false, "a-1: is sealed before it has started"},
		"sealed on no record":          {noStatus, with(1, decide.Sealed), false, "a-1: is sealed before it has started"},
		"no token":                     {lost, decide.Record{Members: []decide.RecordedMember{{Mode: decide.Sealed}}}, false, "the record is empty"},
		"both know the ID":             {bothKnow, with(1, decide.Sealed), false, "a-1: is sealed before it has started"},
		"sealed as the status asks":    {putBack, with(1, decide.Sealed), false, ""},
		"one was not seen":             {unseen, again.With(decide.RecordedMember{Ordinal: 1, Mode: decide.Sealed}), false, ""},
		"one was not seen, and listed": {unseenListed, again.With(decide.RecordedMember{Ordinal: 1, Mode: decide.Sealed}), false, "a-1 becomes Sealed without evidence"},
		"nothing was there to see":     {unseen, again.With(decide.RecordedMember{Ordinal: 2, Mode: decide.Sealed}), false, "a-2 becomes Sealed without evidence"},
		"lost, and brought back":       {lost, decide.Record{Token: "t", Members: []decide.RecordedMember{{Mode: decide.Sealed}}}, false, ""},
		"lost, and founded":            {lost, decide.FoundingRecord("t", 1), false, "a-0 becomes Founding without evidence"},
		"never there, and founded":     {lost, decide.FoundingRecord("t", 1), true, ""},
		"never there, founded sealed":  {lost, decide.Record{Token: "t", Members: []decide.RecordedMember{{Mode: decide.Sealed}}}, true, "a-0 becomes Sealed without evidence"},
	} {
		if got := loosened(c.state, c.after, c.founds); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
