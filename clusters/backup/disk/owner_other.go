//go:build !unix

package disk

import "os"

// ChangedByOthers always returns false on platforms without root.
func ChangedByOthers(string) (bool, error) { return false, nil }

// LedByOthers always returns "" on platforms without root.
func LedByOthers(string) (string, error) { return "", nil }

// Owner returns false on platforms without user IDs.
func Owner(os.FileInfo) (uid int, known bool) { return 0, false }
