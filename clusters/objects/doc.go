// Package objects builds the Kubernetes objects of one etcd cluster, as client-go apply configurations.
//
// It is deterministic and does not access the cluster. It builds only the fields that Quorate's field manager owns, in
// a form that the API server does not change by defaulting or normalization. The fields that client-go extracts from
// the live object's managed fields therefore equal the built fields as JSON, and any difference is drift.
package objects
