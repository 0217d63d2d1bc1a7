// Package invariants defines conditions that every decision must meet in every state. It evaluates states by itself and
// does not share helpers with the rules of package decide, so that one mistake does not affect both. From package
// decide it uses only the types, and the records that actions write, which it checks.
//
// An invariant lists the allowed actions. Any other action violates the invariant, so a new action must be added
// explicitly.
package invariants
