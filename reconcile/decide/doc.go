// Package decide says what to do next for one etcd cluster.
//
// It is pure: a [State] goes in, a [Decision] comes out. It does no I/O, keeps nothing, reads no
// clock and rolls no dice; the same State gives the same Decision. The rules stand in one ordered
// list (rules.go); the first that speaks decides.
//
// # Words
//
// Declared is what git asks for. A replica is the Kubernetes slot: pod, volume, name, ordinal. A
// member is an entry in etcd's own list: voter or learner. Membership is that list, or the reason
// why there is none; unknown is never empty. The record is what Quorate keeps of a cluster between
// passes, in the cluster itself. A cluster has formed once etcd has given it an ID; formed is never
// forgotten.
//
// # Invariants
//
// Package invariants states what no decision may ever do, whatever the rules say. Tests hold every
// decision against it.
package decide
