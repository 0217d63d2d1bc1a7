// Package invariants defines the rules that no decision may break in any state. It evaluates states by itself and
// shares no helpers with the rules of package decide, so that one mistake does not affect both. From there it uses only
// the types, and the records that actions write, which it checks.
//
// An invariant lists what is allowed. Any other action violates it, so a new action passes only once it has been
// considered.
package invariants
