// Package decide returns the next step for one etcd cluster.
//
// It is pure: a [State] goes in, a [Decision] comes out. It does no I/O, keeps no state, and uses neither clock nor
// randomness; the same State gives the same Decision. The rules are in one ordered list (rules.go); the first that
// applies decides.
//
// # Words
//
// Declared is the desired state in git. A replica is the Kubernetes slot: pod, volume, name, ordinal. A member is an
// entry in etcd's own list: voter or learner. Membership is that list, or the reason why it is unknown; unknown is
// never treated as empty. The record is what Quorate stores about a cluster between passes, in the cluster itself. A
// cluster has formed once etcd has given it an ID; this is never forgotten.
//
// # Invariants
//
// Package invariants defines what a decision must never do, regardless of the rules. Tests check every decision against
// it.
package decide
