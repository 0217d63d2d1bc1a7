// Package steps defines the phases of a pass. It calls a hook, such as the metrics, when a phase ends.
package steps

import "time"

// Phases by name.
const (
	// Fetch is the reading of one source, including the wait for its turn. A loop reads sources between passes.
	Fetch = "fetch"
	// List is the listing of the clusters.
	List = "list"
	// Observe is the observation of one cluster through Kubernetes and etcd.
	Observe = "observe"
	// Decide is the decision about one cluster.
	Decide = "decide"
	// Act is the execution of a cluster's action.
	Act = "act"
	// Report is the reporting of the result in a cluster's custom resource.
	Report = "report"
)

// Phases returns all phases, in order.
func Phases() []string { return []string{Fetch, List, Observe, Decide, Act, Report} }

// Hook is notified of events in passes. Its methods are called concurrently and must not block.
type Hook interface {
	// Phase is called when a phase has ended, with its duration.
	Phase(name string, took time.Duration)
	// LeaseConflict is called if an action is abandoned because another process has taken the cluster's lease.
	LeaseConflict()
}

// Begin starts a phase and returns the function that ends the phase. That function calls h unless h is nil.
func Begin(h Hook, phase string) (end func()) {
	if h == nil {
		return func() {}
	}
	began := time.Now()
	return func() { h.Phase(phase, time.Since(began)) }
}
