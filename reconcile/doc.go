// Package reconcile runs passes: Fetch, Observe, Decide, Do, Report.
//
// It knows neither git nor Kubernetes nor etcd. It states the two ports that it needs, [Source] and
// [Live]; the command joins them. Nothing is remembered between passes.
//
// # Words
//
// Fetch reads the source, Observe reads what lives, Decide is pure (package decide), Do writes,
// Report tells. A pass looks at every cluster once and does at most one action for each. A run is
// one pass or, until everything is converged, several.
package reconcile
