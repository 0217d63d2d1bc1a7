// Package clusters is the live side: it observes Kubernetes and etcd, carries out single actions, and reports in the
// custom resources. It implements the port reconcile.Live.
//
// list.go lists the objects. observe.go observes one cluster, with a file for each part; drift.go compares it with the
// desired objects. act.go carries out an action under the lease (lease.go); report.go writes the result.
package clusters
