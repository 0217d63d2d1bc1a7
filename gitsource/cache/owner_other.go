//go:build !unix

package cache

import "io/fs"

const inPlace = 0

// changeable cannot check owners on this platform.
func changeable(fs.FileInfo) string { return "" }
