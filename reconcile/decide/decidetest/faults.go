package decidetest

import (
	"fmt"
	"reflect"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/invariants"
)

// Faults returns the faults of the decision for state s, of each rule's own decision, and of the record that the action
// writes. s must be a state that can be observed: ordinals, IDs and names are unique.
func Faults(s decide.State) []string {
	d := decide.Decide(s)
	faults := invariants.Broken(s, d)
	if again := decide.Decide(s); again != d {
		faults = append(faults, fmt.Sprintf("not pure: the second decision is %s", again))
	}
	for _, turned := range turned(s) {
		before := Clone(turned)
		if other := decide.Decide(turned); other != d {
			faults = append(faults, fmt.Sprintf("depends on order: in a different order, the decision is %s", other))
		}
		if !reflect.DeepEqual(turned.BackupBeforeDeletion(), s.BackupBeforeDeletion()) {
			faults = append(faults, "depends on order: in a different order, the status names a different final backup")
		}
		if !reflect.DeepEqual(turned, before) {
			faults = append(faults, "not pure: it changes the state")
		}
	}
	if !slices.ContainsFunc(decide.Rules(), func(r decide.Rule) bool { return r.Name == d.Rule }) {
		faults = append(faults, "unknown rule "+d.Rule)
	}
	return slices.Concat(faults, opinionFaults(s), recordFaults(s, d))
}

// opinionFaults checks each rule's own decision against the invariants: rules must not rely on earlier rules, except on
// guards.
func opinionFaults(s decide.State) []string {
	var faults []string
	for _, o := range decide.Opinions(s) {
		if !o.Speaks {
			continue
		}
		unguarded := s
		unguarded.Declared.Problems, unguarded.Declared.Suspended, unguarded.LockHolder = nil, false, ""
		unguarded.Declared.Orphaned = ""
		unguarded.Objects.Foreign, unguarded.Objects.Terminating, unguarded.Objects.Irreplaceable = nil, nil, nil
		unguarded.CA = decide.CA{Secret: s.Record.CA}
		unguarded.Objects.Relabelled, unguarded.Objects.Rewritten = nil, nil
		for _, what := range invariants.Broken(unguarded, o.Decision) {
			if o.Decision.Verdict == decide.Act && what != "guards hold: acts although cluster IDs disagree" {
				faults = append(faults, fmt.Sprintf("rule %s by itself: %s", o.Rule, what))
			}
		}
	}
	return faults
}

// recordFaults applies the decision to the record and checks that the result is stable.
func recordFaults(s decide.State, d decide.Decision) []string {
	var faults []string
	if s.Declared.Replicas < 1 {
		return nil
	}
	after, required := Clone(s), decide.RequiredRecord(s, "fresh")
	after.Record = required
	if len(after.Record.Members) > 0 && !reflect.DeepEqual(decide.RequiredRecord(after, "fresher"), after.Record) {
		faults = append(faults, "the required record changes once it is written")
	}
	if !reflect.DeepEqual(decide.RequiredRecord(reversed(s), "fresh"), required) {
		faults = append(faults, "the required record depends on order")
	}
	if a, seals := d.Action.(decide.Seal); seals {
		after.Record = decide.SealedRecord(s, a, "fresh")
		if next, again := decide.Decide(after).Action.(decide.Seal); again {
			faults = append(faults, fmt.Sprintf("seals repeatedly: the next action is %s", next))
		}
	}
	return faults
}

// Clone returns a copy of the state that shares no memory with it.
func Clone(s decide.State) decide.State {
	s.Declared.Problems = slices.Clone(s.Declared.Problems)
	s.Record.Members = slices.Clone(s.Record.Members)
	s.Objects.Drift = slices.Clone(s.Objects.Drift)
	s.Objects.Remaining = slices.Clone(s.Objects.Remaining)
	s.Record.Removed = slices.Clone(s.Record.Removed)
	s.Waited, s.Repeated = slices.Clone(s.Waited), slices.Clone(s.Repeated)
	s.Objects.Rewritten = slices.Clone(s.Objects.Rewritten)
	s.Backups.Jobs, s.Backups.Drift = slices.Clone(s.Backups.Jobs), slices.Clone(s.Backups.Drift)
	s.Membership.StaleAlarms = slices.Clone(s.Membership.StaleAlarms)
	s.Objects.Foreign = slices.Clone(s.Objects.Foreign)
	s.Objects.Relabelled = slices.Clone(s.Objects.Relabelled)
	s.Objects.Terminating = slices.Clone(s.Objects.Terminating)
	s.Objects.Irreplaceable = slices.Clone(s.Objects.Irreplaceable)
	s.Certificates = slices.Clone(s.Certificates)
	s.CA.Mounted = slices.Clone(s.CA.Mounted)
	s.Replicas = slices.Clone(s.Replicas)
	s.Membership.Members = slices.Clone(s.Membership.Members)
	for i := range s.Membership.Members {
		s.Membership.Members[i].Alarms = slices.Clone(s.Membership.Members[i].Alarms)
	}
	return s
}

// turned returns copies of the state with its unordered lists in different orders. A list of two entries has only one
// other order.
func turned(s decide.State) []decide.State {
	most := max(len(s.Replicas), len(s.Certificates), len(s.Membership.Members), len(s.Membership.StaleAlarms),
		len(s.Waited), len(s.Repeated), len(s.Objects.Rewritten), len(s.Backups.Jobs))
	for _, list := range unordered(&s) {
		most = max(most, len(*list))
	}
	if most < 3 {
		return []decide.State{reversed(s)}
	}
	return []decide.State{reversed(s), rotated(s)}
}

// reversed returns the same state with every unordered list reversed.
func reversed(s decide.State) decide.State {
	s = Clone(s)
	for _, list := range unordered(&s) {
		slices.Reverse(*list)
	}
	slices.Reverse(s.Replicas)
	slices.Reverse(s.Certificates)
	slices.Reverse(s.Membership.Members)
	slices.Reverse(s.Membership.StaleAlarms)
	slices.Reverse(s.Waited)
	slices.Reverse(s.Repeated)
	slices.Reverse(s.Objects.Rewritten)
	slices.Reverse(s.Backups.Jobs)
	return s
}

// rotated returns the same state with the first entry of every unordered list moved to its end.
func rotated(s decide.State) decide.State {
	s = Clone(s)
	for _, list := range unordered(&s) {
		*list = rotate(*list)
	}
	s.Replicas = rotate(s.Replicas)
	s.Certificates = rotate(s.Certificates)
	s.Membership.Members = rotate(s.Membership.Members)
	s.Membership.StaleAlarms = rotate(s.Membership.StaleAlarms)
	s.Waited = rotate(s.Waited)
	s.Repeated = rotate(s.Repeated)
	s.Objects.Rewritten = rotate(s.Objects.Rewritten)
	s.Backups.Jobs = rotate(s.Backups.Jobs)
	return s
}

func unordered(s *decide.State) []*[]string {
	return []*[]string{&s.Declared.Problems, &s.Objects.Drift, &s.Objects.Remaining, &s.Objects.Foreign,
		&s.Objects.Relabelled, &s.Objects.Terminating, &s.Objects.Irreplaceable,
		&s.CA.Mounted, &s.Backups.Drift}
}

func rotate[T any](list []T) []T {
	if len(list) == 0 {
		return list
	}
	return slices.Concat(list[1:], list[:1])
}
