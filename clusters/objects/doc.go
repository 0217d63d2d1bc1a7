// Package objects builds the Kubernetes objects of one etcd cluster, as client-go apply configurations.
//
// It is pure. It builds what Quorate's field manager owns. The API server's defaulting and normalization do not change
// it, so that whatever client-go extracts from the live object's managed fields compares equal as JSON, and any
// difference is drift.
package objects
