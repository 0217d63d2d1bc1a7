// Package kube provides access to Kubernetes: lists, server-side apply, conditional deletes, leases, events and
// port-forwards.
//
// It is the only package that uses client-go's clients, and it does not make decisions. All of Quorate's writes use the
// field manager [Manager], which distinguishes Quorate's fields of an object from those of other managers.
package kube
