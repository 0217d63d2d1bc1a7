// Package simulate is a world in which one cluster lives: the objects in Kubernetes, pods and
// volumes, etcd's membership, and what can happen to them. It is pure and deterministic: it does no
// I/O and reads no clock, and the same seed and the same calls give the same world.
//
// A [World] is observed as a [decide.State], acted on by a [decide.Action], and moves on by itself
// with every Tick: Kubernetes makes pods and volumes and collects garbage, etcd starts, forms
// quorum, elects and settles its version, clients write. Faults are methods too, and so is what
// people do behind our back. An action is a sequence of named writes, and a pass can die after any
// of them.
//
// The world watches for what must never happen, whoever decides: see [World.Violations].
package simulate
