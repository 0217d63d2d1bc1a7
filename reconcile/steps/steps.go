// Package steps defines the phases of a pass. A hook is called when a phase ends; metrics are based on it.
package steps

import "time"

// Phases by name.
const (
	// Fetch is reading one source, including the wait for its turn. A loop does it between passes.
	Fetch = "fetch"
	// List is listing the clusters.
	List = "list"
	// Observe is observing one cluster through Kubernetes and etcd.
	Observe = "observe"
	// Decide is deciding for one cluster.
	Decide = "decide"
	// Act is executing its action.
	Act = "act"
	// Report is reporting in its custom resource.
	Report = "report"
)

// Phases returns all phases, in order.
func Phases() []string { return []string{Fetch, List, Observe, Decide, Act, Report} }

// Hook is called concurrently. Its callers wait for it, so it must not block.
type Hook interface {
	// Phase is called when a phase has ended, with its duration.
	Phase(name string, took time.Duration)
	// LeaseConflict is called if an action is abandoned because another process has taken the cluster's lease.
	LeaseConflict()
}

// Begin starts a phase and returns the function that ends it, which calls the hook unless that is nil.
func Begin(h Hook, phase string) (end func()) {
	if h == nil {
		return func() {}
	}
	began := time.Now()
	return func() { h.Phase(phase, time.Since(began)) }
}
