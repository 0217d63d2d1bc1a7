// Package invariants defines the rules that no decision may break in any state. It evaluates states by itself and
// shares no helpers with the rules of package decide, so that one mistake does not affect both. From that package it
// uses only the types, and the records that actions write, which it checks.
//
// An invariant lists the allowed actions. Any other action violates it, so a new action must be added explicitly.
package invariants
