// Package clusters implements reconcile.Live, the live side of a run. It observes Kubernetes and etcd, carries out
// single actions, and reports in the custom resources.
//
// list.go lists the objects. observe.go observes one cluster, with a separate file for each part of the state, and
// drift.go compares the live objects with the desired objects. act.go carries out an action while it holds the lease
// (lease.go), and report.go writes the result.
package clusters
