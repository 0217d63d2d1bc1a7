// Package clusters is the live side: it observes what runs, in Kubernetes and in etcd, carries out
// single actions, and reports into the custom resources. It implements the port reconcile.Live.
package clusters
