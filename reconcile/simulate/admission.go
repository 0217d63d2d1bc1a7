package simulate

import (
	"maps"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// rewrite says what an admission policy does to a field of an object that is applied.
type rewrite int

const (
	asApplied rewrite = iota
	// acceptable: members run well with the value of the policy.
	acceptable
	// unsafe: the value of the policy weakens the cluster.
	unsafe
)

// rewrittenField is the path of the field that policies rewrite.
const rewrittenField = "spec.field"

// rewriting are the admission policies of the world.
type rewriting struct {
	policies map[string]rewrite // by object
	// seen are the objects that the present pass has applied, and whose answer it has read.
	seen map[string]bool
}

func (r rewriting) clone() rewriting {
	return rewriting{maps.Clone(r.policies), maps.Clone(r.seen)}
}

// Rewrite has an admission policy rewrite a field of an object each time that it is applied.
func (w *World) Rewrite(name string) { w.setPolicy(name, acceptable) }

// RewriteUnsafely is Rewrite of a field that security depends on.
func (w *World) RewriteUnsafely(name string) { w.setPolicy(name, unsafe) }

// StopRewriting removes all admission policies. What they have rewritten stays until it is applied again.
func (w *World) StopRewriting() { w.rewriting.policies = nil }

func (w *World) setPolicy(name string, r rewrite) {
	policies := map[string]rewrite{name: r}
	maps.Copy(policies, w.rewriting.policies)
	w.rewriting.policies = policies
}

// admit has policies rewrite an object that was applied.
func (w *World) admit(name string) {
	o := w.objects[name]
	o.rewritten = w.rewriting.policies[name]
	w.objects[name] = o
	seen := map[string]bool{name: true}
	maps.Copy(seen, w.rewriting.seen)
	w.rewriting.seen = seen
}

// rewrittenObjects are those that passes know to be rewritten, sorted: by the answer to what this pass has applied, or
// by the status.
func (w *World) rewrittenObjects() []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		known := w.rewriting.seen[name] || slices.Contains(w.status.rewritten, name)
		if known && w.objects[name].rewritten != asApplied {
			list = append(list, name)
		}
	}
	return list
}

// seenRewritten is the field of an object that a pass knows to be rewritten; nil if it knows none.
func (w *World) seenRewritten(name string) *decide.RewrittenField {
	o := w.objects[name]
	if o.rewritten == asApplied || o.changed || !slices.Contains(w.status.rewritten, name) {
		return nil
	}
	accepted := o.rewritten == acceptable || name == w.customResource()
	return &decide.RewrittenField{Object: name, Field: rewrittenField, Accepted: accepted, Digest: "d"}
}

// isAccepted reports whether a pass leaves the rewritten field of an object as it is.
func (w *World) isAccepted(name string) bool {
	field := w.seenRewritten(name)
	return field != nil && field.Accepted
}

// fromRewritten takes the policies to be there that have rewritten fields.
func (w *World) fromRewritten(fields []decide.RewrittenField) {
	for _, f := range fields {
		o, there := w.objects[f.Object]
		if !there {
			continue
		}
		if o.rewritten = unsafe; f.Accepted {
			o.rewritten = acceptable
		}
		w.objects[f.Object] = o
		w.setPolicy(f.Object, o.rewritten)
		if !slices.Contains(w.status.rewritten, f.Object) {
			w.status.rewritten = append(w.status.rewritten, f.Object)
		}
	}
	slices.Sort(w.status.rewritten)
}

// Undo undoes what was done since the world was as before, as a person or a controller does that goes by another
// source. Time, and what passes have written into the status, stay.
func (w *World) Undo(before *World) {
	now, told, serial, violations := w.now, w.status, w.serial, w.violations
	*w = *before.Clone()
	w.now, w.serial, w.violations = now, serial, violations
	if w.exists(w.customResource()) {
		w.status = told
	}
}
