// Package pki creates and checks the certificates of one etcd cluster: the cluster's own CA, and the leaf
// certificates that it issues to members and clients.
//
// It does no I/O and reads no clock: the time is an argument. Keys and serial numbers come from the random
// source of the operating system, because crypto/ecdsa and crypto/x509 accept no other.
package pki
