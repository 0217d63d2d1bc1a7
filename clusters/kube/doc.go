// Package kube provides access to Kubernetes: list, server-side apply, guarded delete, lease, events,
// port-forward.
//
// It is the only package that uses client-go's clients, and it makes no decisions. All of Quorate's writes use the
// field manager [Manager], so that Quorate's fields of an object can be distinguished from other managers' fields.
package kube
