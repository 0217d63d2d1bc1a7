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
	file, err := openRegular(name, maxIndexBytes)
	if errors.Is(err, os.ErrNotExist) {
		return false, name, nil // nothing was ever checked out
	}
	if err != nil {
		return false, name, err
	}
	defer file.Close()
	var list index.Index
	if err := index.NewDecoder(io.LimitReader(file, maxIndexBytes)).Decode(&list); err != nil {
		return false, name, fmt.Errorf("read %s: %w", name, err)
	}
	own := folded(filepath.ToSlash(relative))
	for _, entry := range list.Entries {
		// A sparse index lists whole directories, with a slash at the end.
		listed := folded(entry.Name)
		around := strings.HasSuffix(listed, "/") && strings.HasPrefix(own+"/", listed)
		if strings.HasPrefix(listed, own+"/") || listed == own || around {
			return true, name, nil
		}
	}
	return false, name, nil
}

// folded returns the same text for names that are the same on file systems that ignore case or normalize Unicode.
func folded(name string) string { return strings.ToLower(norm.NFC.String(name)) }
