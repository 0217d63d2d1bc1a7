//go:build !unix

package disk

// ChangedByOthers is never so where there is no root.
func ChangedByOthers(string) (bool, error) { return false, nil }

// LedByOthers finds none where there is no root.
func LedByOthers(string) (string, error) { return "", nil }
