//go:build !unix

package cache

import "io/fs"

const inPlace = 0

// changeable is not known there.
func changeable(fs.FileInfo) string { return "" }
