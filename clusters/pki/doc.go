// Package pki creates and checks the certificates of one etcd cluster: the cluster's own CA, and the leaf certificates
// that the CA issues to members and clients.
//
// It performs no I/O and does not read the clock: the time is an argument. Keys and serial numbers come from the
// operating system's random source, because crypto/ecdsa and crypto/x509 do not accept any other.
package pki
