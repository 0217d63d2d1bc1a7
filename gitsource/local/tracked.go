package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// isTracked reports whether the index of the repository with that worktree lists a directory in it, or files in the
// directory: then they may come from a commit. It also returns the name of the index, which may not exist. An index that
// cannot be read is an error.
func isTracked(worktree, dir string) (tracked bool, name string, err error) {
	relative, err := filepath.Rel(worktree, dir)
	if err != nil {
		return false, "", err
	}
	git, err := gitDir(worktree)
	if err != nil {
		return false, "", err
	}
	name = filepath.Join(git, "index")
	own := folded(filepath.ToSlash(relative))
	err = readIndex(name, func(entry []byte) {
		// A sparse index lists whole directories, with a slash at the end.
		listed := folded(string(entry))
		around := strings.HasSuffix(listed, "/") && strings.HasPrefix(own+"/", listed)
		tracked = tracked || strings.HasPrefix(listed, own+"/") || listed == own || around
	})
	if errors.Is(err, os.ErrNotExist) {
		return false, name, nil // nothing was ever checked out
	}
	if err != nil {
		return false, name, fmt.Errorf("read %s: %w", name, err)
	}
	return tracked, name, nil
}

// folded returns the same text for names that are the same on file systems that ignore case or normalize Unicode.
func folded(name string) string { return strings.ToLower(norm.NFC.String(name)) }
