// Package invariants says what no decision may do in any state. It looks at a state by itself and
// shares no helper with the rules of package decide, so that one mistake does not make both wrong:
// what it takes from there are the types, and the records that actions write, which it judges.
//
// An invariant lists what is allowed. An action that it does not name breaks it, so a new action
// passes only once somebody has thought about it.
package invariants
