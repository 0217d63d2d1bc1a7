// Package simulate simulates a world with one cluster: the Kubernetes objects, pods and volumes, etcd's membership, and
// the faults that can occur. It is deterministic: it does no I/O and reads no clock, and the same seed and the same
// calls produce the same world.
//
// A [World] is observed as a [decide.State] and changed by a [decide.Action]. It advances with every Tick: Kubernetes
// creates pods and volumes and collects garbage; etcd starts, forms quorum, elects a leader and determines its cluster
// version; clients write. Other methods are faults and manual actions. An action is a sequence of named writes, and a
// pass can die after any write.
//
// The world records events that must never happen, whatever causes them: see [World.Violations].
package simulate
