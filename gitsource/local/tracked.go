package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// isTracked reports whether the index of the repository at worktree lists the directory dir or files in it. Listed
// files may come from a commit. isTracked also returns the name of the index, which may not exist. It returns an error
// if the index cannot be read.
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
		// A sparse index lists whole directories, with a trailing slash.
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

// folded returns the same text for names that are equal on file systems that ignore case or normalize Unicode.
func folded(name string) string { return strings.ToLower(norm.NFC.String(name)) }
