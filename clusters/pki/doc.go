// Package pki makes and checks the certificates of one etcd cluster: a CA of the cluster's
// own, and the leaves that it issues to members and clients.
//
// It does no I/O and reads no clock: the time is an argument. Keys and serial numbers come from the
// random source of the operating system; crypto/ecdsa and crypto/x509 take no other.
package pki
