package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"quorate.dev/quorate/reconcile/decide"
)

// patience is how long members are asked again for a proof. proofPause is the first pause between attempts; the pause
// doubles each time, up to proofPauseMax. On a busy machine, a member may miss the timeout and respond normally a
// moment later.
const (
	patience      = 30 * time.Second
	proofPause    = time.Second / 2
	proofPauseMax = 5 * time.Second
)

// Proof holds what the members report about a snapshot's data.
type Proof struct {
	// By lists the members that hold the same data.
	By []string
	// Differs lists the members that hold different data.
	Differs []string
	// Why explains why By is not a quorum. It is empty if By is a quorum.
	Why string
}

// Prove asks members for the hash of their data at a revision until a quorum is known to hold the same data as a
// snapshot. It asks one member at a time, followers first, because a member does not apply changes while it computes
// the hash. Members that have compacted that revision, or were compacted at a different revision, do not prove
// anything. While a quorum is still possible, Prove keeps asking members that did not respond, for up to Patience.
// Patience does not interrupt a hash in progress, which has its own timeout.
func (c *Clients) Prove(ctx context.Context, cluster Cluster, wanted decide.Hash) Proof {
	limit := cmp.Or(c.Patience, patience)
	patient, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no response within %s", limit))
	defer cancel()
	p := prover{wanted: wanted, said: map[decide.ID]opinion{}}
	proof := Proof{Why: "no quorum confirms the member list"}
	for pause := proofPause; ; pause *= 2 {
		if replies, poll := c.askForList(patient, cluster); poll.list != nil {
			m := cluster.membership(poll.list, replies)
			p.ask(ctx, patient, replies, m)
			var settled bool
			if proof, settled = p.proof(m); settled {
				return proof
			}
		}
		select {
		case <-patient.Done():
			return proof
		case <-time.After(min(pause, proofPauseMax)):
		}
	}
}

// prover collects a proof and keeps the members' results, because a hash is expensive to compute and does not change.
type prover struct {
	wanted decide.Hash
	said   map[decide.ID]opinion
}

// opinion is the result for one member. The zero value means that the member was not asked.
type opinion struct {
	pod     string
	verdict verdict
	// why explains why the result is not a proof.
	why string
}

type verdict int

const (
	unknown verdict = iota // a later request may succeed
	same
	other
	incomparable // and will remain so
)

// ask asks the members that have no final result yet, until there is a quorum. Once patient is done, it does not ask
// any member again.
func (p *prover) ask(ctx, patient context.Context, replies []reply, m decide.Membership) {
	for _, r := range sources(replies, m) {
		said, asked := p.said[r.id()]
		if said.verdict != unknown || asked && patient.Err() != nil {
			continue
		}
		p.said[r.id()] = p.opinionOf(ctx, r)
		if proof, _ := p.proof(m); proof.Why == "" {
			return
		}
	}
}

func (p *prover) opinionOf(ctx context.Context, r *reply) opinion {
	said := opinion{pod: r.pod}
	hash, err := hashWithin(ctx, r, p.wanted.Revision, proofTime(r.status.DbSize))
	switch {
	case err != nil:
		said.why = reason(err)
		if errors.Is(err, rpctypes.ErrCompacted) {
			said.verdict = incomparable
		}
	case max(0, hash.CompactRevision) != max(0, p.wanted.CompactRevision): // -1 if it was never compacted
		said.verdict, said.why = compactedElsewhere(hash, p.wanted)
	case hash.Sum != p.wanted.Sum:
		said.verdict = other
	default:
		said.verdict = same
	}
	return said
}

// compactedElsewhere returns why the hashes cannot be compared. A member that was compacted at its newest revision
// keeps its previous hash and responds with it (etcd's storage/mvcc/hash.go).
func compactedElsewhere(hash, wanted decide.Hash) (verdict, string) {
	switch {
	case wanted.CompactRevision == wanted.Revision:
		return incomparable, "nothing has been written since its compaction"
	case hash.CompactRevision < wanted.CompactRevision:
		return unknown, "it has not finished the same compaction yet"
	default:
		return incomparable, "it has been compacted"
	}
}

// proof summarizes the results for the membership's voters, and reports whether asking them again cannot
// change the result.
func (p *prover) proof(m decide.Membership) (proof Proof, settled bool) {
	var reasons []string
	open, voters := 0, m.Voters()
	for _, voter := range voters {
		said := p.said[voter.ID]
		corrupt := slices.Contains(voter.Alarms, decide.AlarmCorrupt)
		switch {
		case said.verdict == same:
			proof.By = append(proof.By, said.pod)
			continue
		case said.verdict == other:
			proof.Differs = append(proof.Differs, said.pod)
			continue
		case said.verdict == unknown && !corrupt:
			open++
		}
		if why := cmp.Or(said.why, voter.Why); why != "" {
			reasons = append(reasons, podOf(voter)+": "+why)
		}
	}
	slices.Sort(proof.By)
	slices.Sort(proof.Differs)
	slices.Sort(reasons)
	quorum := decide.Quorum(len(voters))
	if len(proof.By) >= quorum {
		return proof, true
	}
	proof.Why = fmt.Sprintf("%d of %d voters hold the same data", len(proof.By), len(voters))
	if len(reasons) > 0 {
		proof.Why += "; " + strings.Join(reasons, "; ")
	}
	return proof, len(proof.By)+open < quorum
}

// proofTime returns the timeout for requesting a hash for a proof. It is longer than hashTime, because no pass waits
// for a proof.
func proofTime(size int64) time.Duration { return min(10*hashTimeoutMax, 2*unboundedHashTime(size)) }
