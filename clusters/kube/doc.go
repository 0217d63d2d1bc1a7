// Package kube is the way to Kubernetes: list, server-side apply, guarded delete, lease, events,
// port-forward.
//
// It is the only package that uses client-go's clients, and it decides nothing. Everything that
// Quorate writes is written by the field manager [Manager], so that what Quorate owns of an object
// can be told from what others own.
package kube
