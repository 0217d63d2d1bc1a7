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

// patience is how long members are asked again for a proof, and proofPause how long they are left
// alone in between, longer each time: on a busy machine, one may fail to answer in time and be well a
// moment later.
const (
	patience      = 30 * time.Second
	proofPause    = time.Second / 2
	proofPauseMax = 5 * time.Second
)

// Proof is what members say of a snapshot.
type Proof struct {
	// By are the members that hold the same data.
	By []string
	// Differs are members that hold other data.
	Differs []string
	// Why there is no quorum in By, empty if there is.
	Why string
}

// Prove asks members for the hash of their data at a revision, one after the other, since none
// applies anything meanwhile: followers first, until a quorum holds the same data as a snapshot.
// Members that have compacted that revision away, or were compacted elsewhere, prove nothing. While
// a quorum could still come together, those that gave no answer are asked again until the patience
// is over. It bounds when a question may be repeated: a hash that a member works on has its own time.
func (c *Clients) Prove(ctx context.Context, cluster Cluster, wanted decide.Hash) Proof {
	limit := cmp.Or(c.Patience, patience)
	patient, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	p := prover{wanted: wanted, said: map[decide.ID]opinion{}}
	proof := Proof{Why: "no quorum says who the members are"}
	for pause := proofPause; ; pause *= 2 {
		if replies, list := c.askForList(patient, cluster); list != nil {
			m := membership(list, replies)
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

// prover asks for a proof, and keeps what was said: a hash costs a member something, and one that
// was given stays true.
type prover struct {
	wanted decide.Hash
	said   map[decide.ID]opinion
}

// opinion is what a member says of the data. The zero value is that of one that was not asked.
type opinion struct {
	pod     string
	verdict verdict
	// why it proves nothing.
	why string
}

type verdict int

const (
	unknown verdict = iota // it may answer if it is asked again
	same
	other
	incomparable // and stays so
)

// ask asks those that have not given their last word, until there is a quorum. Once the patience is
// over, nobody is asked again.
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
	case max(0, hash.CompactRevision) != max(0, p.wanted.CompactRevision): // -1 where it was never compacted
		said.verdict, said.why = compactedElsewhere(hash, p.wanted)
	case hash.Sum != p.wanted.Sum:
		said.verdict = other
	default:
		said.verdict = same
	}
	return said
}

// compactedElsewhere says why hashes cannot be compared. A member that was compacted at its newest
// revision answers with the hash from before, which it keeps (etcd's storage/mvcc/hash.go).
func compactedElsewhere(hash, wanted decide.Hash) (verdict, string) {
	switch {
	case wanted.CompactRevision == wanted.Revision:
		return incomparable, "nothing was written since it was compacted"
	case hash.CompactRevision < wanted.CompactRevision:
		return unknown, "it is not compacted as far yet"
	default:
		return incomparable, "it was compacted meanwhile"
	}
}

// proof sums up what the voters of a membership say, and reports whether asking again is of no use.
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

// proofTime is how long a member has for its hash where no pass waits for it.
func proofTime(size int64) time.Duration { return min(10*hashTimeoutMax, 2*unboundedHashTime(size)) }
