// Package reconcile runs passes: Fetch, Observe, Decide, Do, Report.
//
// It does not use git, Kubernetes or etcd directly: it declares the two interfaces that it needs, [Source] and [Live],
// and the command provides their implementations. Decisions do not depend on anything kept in memory between passes.
//
// # Terms
//
// Fetch reads the source. Observe reads the live state. Decide chooses what to do, without reading or writing anything
// (package decide). Do writes. Report reports. A pass processes every cluster once, and executes at most one action for
// each. A full pass covers all clusters; a partial pass covers only some of them. A run consists of one pass, or of
// repeated passes until everything has converged.
package reconcile
