//go:build !unix

package disk

// notThrough is 0 because this platform has no such flag.
const notThrough = 0
