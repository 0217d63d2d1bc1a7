// Package decide determines the next step for one etcd cluster.
//
// It is pure: it computes a [Decision] from a [State]. It does no I/O, keeps no state, and uses neither a clock nor
// randomness, so the same State always gives the same Decision. The rules are in one ordered list (rules.go); the first
// rule that applies determines the Decision.
//
// # Words
//
// Declared is the desired state in git. A replica is a slot in Kubernetes, with its pod, volume, name and ordinal. A
// member is an entry in etcd's own list, either a voter or a learner. Membership is that list, or the reason why the
// list is unknown; an unknown list is never treated as empty. The record is the information about a cluster that
// Quorate keeps between passes, in the cluster itself. A cluster has formed once etcd has given it an ID; this is never
// forgotten.
//
// # Invariants
//
// Package invariants defines conditions that every decision must meet, regardless of the rules. Tests check every
// decision against the invariants.
package decide
