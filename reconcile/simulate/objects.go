package simulate

import (
	"quorate.dev/quorate/reconcile/decide"
)

// object is a Kubernetes object that is there.
type object struct {
	uid string
	// owner is the UID of the custom resource that owns it; empty if none does.
	owner string
	// changed by hand.
	changed bool
	// foreign: it bears the name and is somebody else's.
	foreign bool
}

// statefulSet is what the StatefulSet says.
type statefulSet struct {
	replicas             int
	version, hash, token string
}

func (w *World) customResource() string { return "EtcdCluster " + w.name }
func (w *World) configMap() string      { return "ConfigMap " + w.name + "-members" }
func (w *World) authority() string      { return "Secret " + w.name + "-ca" }
func (w *World) peerService() string    { return "Service " + w.name }
func (w *World) statefulSet() string    { return "StatefulSet " + w.name }

// Objects lists the objects of the cluster in the order in which they are written.
func (w *World) Objects() []string {
	return []string{
		w.customResource(), w.configMap(), w.authority(),
		"Secret " + w.name + "-peer-tls", "Secret " + w.name + "-server-tls", "Secret " + w.name + "-client-tls",
		w.peerService(), "Service " + w.name + "-client", "PodDisruptionBudget " + w.name, w.statefulSet(),
	}
}

func (w *World) exists(name string) bool {
	o, there := w.objects[name]
	return there && !o.foreign
}

// differs says what is the matter with an object, given the record that it must carry; empty if nothing is.
func (w *World) differs(name string, standing decide.Record) string {
	o, there := w.objects[name]
	switch {
	case !there:
		return "missing"
	case o.changed:
		return "changed by hand"
	case name == w.customResource():
		if !sameDeclaration(w.applied, w.Declared) {
			return "spec is not as in git"
		}
	case o.owner != w.objects[w.customResource()].uid:
		return "owned by a custom resource that is gone"
	case name == w.configMap() && !sameRecord(w.record, standing):
		return "members are not as they should be"
	case name == w.statefulSet() && w.set != w.template(standing):
		return "spec is not as it should be"
	}
	return ""
}

// mendable reports whether an object that is not as it should be can be put right without changing what pods are made of.
func (w *World) mendable(name string, standing decide.Record) bool {
	switch {
	case !w.exists(name):
		return true
	case name == w.configMap():
		return !sameRecord(w.record, standing)
	}
	return name != w.statefulSet()
}

// template is what the StatefulSet must say. The token is for its life: volumes are made for it.
func (w *World) template(standing decide.Record) statefulSet {
	token := standing.Token
	if w.exists(w.statefulSet()) {
		token = w.set.token
	}
	return statefulSet{replicas: standing.Replicas(), version: w.Declared.Version, hash: w.Declared.SpecHash, token: token}
}

// write makes an object what it must be, given the record that it must carry.
func (w *World) write(name string, standing decide.Record) {
	o, there := w.objects[name]
	if !there {
		o.uid = w.next("u")
	}
	o.changed = false
	switch name {
	case w.customResource():
		w.applied = w.Declared
	case w.configMap():
		w.record = standing
	case w.statefulSet():
		w.set = w.template(standing)
	}
	w.objects[name] = o
	w.adopt(name)
}

// adopt makes an object the custom resource's own.
func (w *World) adopt(name string) {
	o, owner := w.objects[name], w.objects[w.customResource()].uid
	if name != w.customResource() && owner != "" {
		o.owner = owner
	}
	w.objects[name] = o
}

// collectGarbage deletes what the custom resource owned once it is gone; volumes have no owner.
func (w *World) collectGarbage() {
	owner := w.objects[w.customResource()].uid
	for _, name := range w.Objects() {
		if o := w.objects[name]; o.owner != "" && o.owner != owner {
			w.Delete(name)
		}
	}
}

func sameDeclaration(a, b decide.Declared) bool {
	return a.Replicas == b.Replicas && a.Version == b.Version && a.SpecHash == b.SpecHash &&
		a.Lifecycle == b.Lifecycle && a.Suspended == b.Suspended
}

func sameRecord(a, b decide.Record) bool {
	if a.Token != b.Token || a.ClusterID != b.ClusterID || len(a.Members) != len(b.Members) {
		return false
	}
	for i := range a.Members {
		if a.Members[i] != b.Members[i] {
			return false
		}
	}
	return true
}
