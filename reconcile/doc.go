// Package reconcile runs passes: Fetch, Observe, Decide, Do, Report.
//
// It does not use git, Kubernetes or etcd directly. It declares the two ports that it needs, [Source] and [Live]; the
// command connects them. Nothing is remembered between passes.
//
// # Words
//
// Fetch reads the source, Observe reads the live state, Decide is pure (package decide), Do writes, and Report reports.
// A pass looks at every cluster once and executes at most one action for each. A run is one pass or, until everything
// has converged, several.
package reconcile
