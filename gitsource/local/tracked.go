package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/text/unicode/norm"
)

// maxIndexBytes is the maximum size of an index, which is enough for about a million files.
const maxIndexBytes = 256 << 20

// isTracked reports whether the index of the repository with that worktree lists a directory in it, or files in the
// directory: then they may come from a commit. An index that cannot be read is an error.
func isTracked(worktree, dir string) (bool, error) {
	relative, err := filepath.Rel(worktree, dir)
	if err != nil {
		return false, err
	}
	git, err := gitDir(worktree)
	if err != nil {
		return false, err
	}
	file, err := os.Open(filepath.Join(git, "index"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // nothing was ever checked out
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	var list index.Index
	if err := index.NewDecoder(io.LimitReader(file, maxIndexBytes)).Decode(&list); err != nil {
		return false, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	own := folded(filepath.ToSlash(relative))
	for _, entry := range list.Entries {
		// A sparse index lists whole directories, with a slash at the end.
		name := folded(entry.Name)
		if strings.HasPrefix(name, own+"/") || name == own || strings.HasSuffix(name, "/") && strings.HasPrefix(own+"/", name) {
			return true, nil
		}
	}
	return false, nil
}

// folded returns the same text for names that are the same on file systems that ignore case or normalize Unicode.
func folded(name string) string { return strings.ToLower(norm.NFC.String(name)) }
