//go:build !linux

package disk

import "os"

// move renames a file or directory.
func move(from, to string) error { return os.Rename(from, to) }
