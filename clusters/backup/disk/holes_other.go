//go:build !linux

package disk

import "os"

// nextData treats the whole file as data.
func nextData(_ *os.File, from, size int64) (start, end int64, err error) { return from, size, nil }
