package simulate

import (
	"maps"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// rewrite describes what an admission policy does to a field of an applied object.
type rewrite int

const (
	asApplied rewrite = iota
	// acceptable means that members also work with the policy's value.
	acceptable
	// unsafe means that the policy's value weakens the cluster.
	unsafe
)

// rewrittenField is the path of the field that policies rewrite.
const rewrittenField = "spec.field"

// rewriting holds the admission policies of the world and their known effects.
type rewriting struct {
	policies map[string]rewrite // by object
	// seen contains the objects that the current pass has applied. The pass knows how policies rewrote them.
	seen map[string]bool
}

func (r rewriting) clone() rewriting {
	return rewriting{maps.Clone(r.policies), maps.Clone(r.seen)}
}

// Rewrite makes an admission policy rewrite a field of an object whenever it is applied.
func (w *World) Rewrite(name string) { w.setPolicy(name, acceptable) }

// RewriteUnsafely is like Rewrite, for a field that security depends on.
func (w *World) RewriteUnsafely(name string) { w.setPolicy(name, unsafe) }

// StopRewriting removes all admission policies. A field stays rewritten until its object is applied again.
func (w *World) StopRewriting() { w.rewriting.policies = nil }

func (w *World) setPolicy(name string, r rewrite) {
	policies := map[string]rewrite{name: r}
	maps.Copy(policies, w.rewriting.policies)
	w.rewriting.policies = policies
}

// admit lets policies rewrite an applied object.
func (w *World) admit(name string) {
	o := w.objects[name]
	o.rewritten = w.rewriting.policies[name]
	w.objects[name] = o
	seen := map[string]bool{name: true}
	maps.Copy(seen, w.rewriting.seen)
	w.rewriting.seen = seen
}

// rewrittenObjects returns the sorted names of the rewritten objects that the pass knows of: those that it applied, and
// those that the status lists.
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

// seenRewritten returns the rewritten field of an object, or nil if passes do not know of a rewritten field.
func (w *World) seenRewritten(name string) *decide.RewrittenField {
	o := w.objects[name]
	if o.rewritten == asApplied || o.changed || !slices.Contains(w.status.rewritten, name) {
		return nil
	}
	accepted := o.rewritten == acceptable || name == w.customResource()
	return &decide.RewrittenField{Object: name, Field: rewrittenField, Accepted: accepted, Digest: "d"}
}

// isAccepted reports whether passes accept the rewritten field of an object.
func (w *World) isAccepted(name string) bool {
	field := w.seenRewritten(name)
	return field != nil && field.Accepted
}

// fromRewritten adds admission policies that explain the rewritten fields.
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

// Undo reverts the world to before, like an operator or a controller that applies a different source. The time and the
// status written by passes are kept.
func (w *World) Undo(before *World) {
	now, told, serial, violations := w.now, w.status, w.serial, w.violations
	*w = *before.Clone()
	w.now, w.serial, w.violations = now, serial, violations
	if w.exists(w.customResource()) {
		w.status = told
	}
}
