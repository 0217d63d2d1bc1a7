// Package objects builds the Kubernetes objects of one etcd cluster, as client-go apply
// configurations.
//
// It is pure. What it builds is what the field manager of Quorate owns: nothing in it is changed by
// the API server's defaults or by its normal forms, so that whatever client-go extracts from the
// live object's managed fields compares equal as JSON, and any difference is drift.
package objects
