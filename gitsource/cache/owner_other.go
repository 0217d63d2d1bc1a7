//go:build !unix

package cache

import "io/fs"

const inPlace = 0

// changeable always returns "", because owners cannot be checked on this platform.
func changeable(fs.FileInfo) string { return "" }
