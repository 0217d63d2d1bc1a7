// Package simulate simulates a world with one cluster: the Kubernetes objects, pods and volumes, etcd's membership, and
// the faults that can occur. It is pure and deterministic: it does no I/O and reads no clock, and the same seed and the
// same calls give the same world.
//
// A [World] is observed as a [decide.State] and acted on by a [decide.Action], and advances by itself with every Tick:
// Kubernetes creates pods and volumes and collects garbage, etcd starts, forms quorum, elects and settles its version,
// clients write. Faults and manual actions are methods too. An action is a sequence of named writes, and a pass can die
// after any of them.
//
// The world records what must never happen, regardless of who decides: see [World.Violations].
package simulate
