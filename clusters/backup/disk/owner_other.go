//go:build !unix

package disk

// ChangedByOthers always returns false on platforms without root.
func ChangedByOthers(string) (bool, error) { return false, nil }

// LedByOthers always returns "" on platforms without root.
func LedByOthers(string) (string, error) { return "", nil }
