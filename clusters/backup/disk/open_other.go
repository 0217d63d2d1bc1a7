//go:build !unix

package disk

// notThrough is nothing: there is no such flag here.
const notThrough = 0
