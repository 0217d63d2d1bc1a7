package forecast

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestQuorumOfFormedClusterIsNotNotFormed checks that a formed cluster is not described as not formed if etcd does not
// return its member list.
func TestQuorumOfFormedClusterIsNotNotFormed(t *testing.T) {
	voters := []decide.Member{{ID: 1, Name: "a-0", Answers: true}, {ID: 2, Name: "a-1"}, {ID: 3, Name: "a-2"}}
	sealed := decide.Record{ClusterID: 7, Members: []decide.RecordedMember{{Ordinal: 0, Mode: decide.Sealed}}}
	for want, s := range map[string]decide.State{
		"not formed":                  {},
		"unknown":                     {Record: sealed},
		"0 of 3 voters, no quorum":    {Record: sealed, Membership: decide.Membership{Members: voters}},
		"1 of 3 voters, no quorum":    {Record: sealed, Membership: decide.Membership{Known: true, Members: voters}},
		"1 of 1 voter, none may fail": {Record: sealed, Membership: decide.Membership{Known: true, Members: voters[:1]}},
	} {
		if got := quorumOf(s, Quorum{}).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
