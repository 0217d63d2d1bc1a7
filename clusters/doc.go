// Package clusters is the live side: it observes what runs, in Kubernetes and in etcd, carries out
// single actions, and reports into the custom resources. It implements the port reconcile.Live.
//
// list.go lists what there is. observe.go looks at one cluster, each part of it in a file of its
// own; drift.go compares that with what should be there. act.go carries out an action, under the
// lease (lease.go); report.go writes what came of it.
package clusters
