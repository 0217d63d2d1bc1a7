// Package local reads git repositories on this machine in place, in every layout that git uses: bare, with worktrees,
// and with objects borrowed from other repositories. It runs no programs and writes nothing.
package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNotRepository is returned for a directory that is not a git directory and does not contain one.
var ErrNotRepository = errors.New("not a git repository")

const (
	// maxLineBytes is the maximum size of the files that only hold a path.
	maxLineBytes = 4 << 10
	// maxAlternatesBytes is the maximum size of one objects/info/alternates.
	maxAlternatesBytes = 64 << 10
	// maxObjectDirs is the maximum number of object directories of one repository.
	maxObjectDirs = 100
)

// Layout lists the directories of a repository.
type Layout struct {
	// Dir is the git directory, and Common the one that it shares with the other worktrees. They are the same unless
	// the repository is a linked worktree.
	Dir, Common string
	// Objects are the directories of objects: its own, then those of the repositories that it borrows from.
	Objects []string
	// Unread lists why objects are not borrowed as objects/info/alternates specifies.
	Unread []string
}

// Find returns the layout of the repository at location, which is a git directory or the directory that holds .git. It
// includes only directories that look like git's, so that write access to location is not enough to name others.
func Find(location string) (Layout, error) {
	location, err := filepath.Abs(location)
	if err != nil {
		return Layout{}, err
	}
	dir, err := gitDir(location)
	if err != nil {
		return Layout{}, err
	}
	l := Layout{Dir: dir, Common: dir}
	if named, err := readLine(filepath.Join(dir, "commondir")); err == nil {
		l.Common = from(dir, named)
		if !isRegular(filepath.Join(dir, "HEAD")) || !isGitDir(l.Common) {
			return Layout{}, fmt.Errorf("%s names %s, which is not a git directory", filepath.Join(dir, "commondir"),
				l.Common)
		}
	} else if !isGitDir(dir) && dir == location {
		return Layout{}, ErrNotRepository
	} else if !isGitDir(dir) && dir == filepath.Join(location, ".git") {
		return Layout{}, errors.New("its .git is not a git directory")
	} else if !isGitDir(dir) {
		return Layout{}, fmt.Errorf("its .git names %s, which is not a git directory; "+
			"if the repository was moved, git worktree repair corrects that", dir)
	}
	own, err := objectDir(filepath.Join(l.Common, "objects"))
	if err != nil {
		return Layout{}, err
	}
	l.Objects = []string{own}
	l.borrow()
	return l, nil
}

// Dirs returns all directories of the layout.
func (l Layout) Dirs() []string { return append([]string{l.Dir, l.Common}, l.Objects...) }

// gitDir returns the git directory at location. A .git that is a file or a link names it.
func gitDir(location string) (string, error) {
	dot := filepath.Join(location, ".git")
	info, err := os.Lstat(dot)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return location, nil
	case err != nil:
		return "", err
	case info.IsDir():
		return dot, nil
	case info.Mode()&os.ModeSymlink != 0:
		return filepath.EvalSymlinks(dot)
	}
	line, err := readLine(dot)
	named, ok := strings.CutPrefix(line, "gitdir: ")
	if err != nil || !ok {
		return "", fmt.Errorf("%s does not name a git directory", dot)
	}
	return from(location, named), nil
}

// isGitDir reports whether dir has what git requires of a git directory.
func isGitDir(dir string) bool {
	return isRegular(filepath.Join(dir, "HEAD")) && isDir(filepath.Join(dir, "objects")) &&
		isDir(filepath.Join(dir, "refs"))
}

func isRegular(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// objectDir returns the directory of objects at path, with links resolved. It must belong to a git directory.
func objectDir(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if filepath.Base(resolved) != "objects" || !isGitDir(filepath.Dir(resolved)) {
		return "", fmt.Errorf("%s is not the objects directory of a git repository", path)
	}
	return resolved, nil
}

// borrow adds the directories that objects/info/alternates names, and those that they name in turn.
func (l *Layout) borrow() {
	for i := 0; i < len(l.Objects); i++ {
		file := filepath.Join(l.Objects[i], "info", "alternates")
		names, err := alternates(file)
		if err != nil {
			l.Unread = append(l.Unread, err.Error())
			continue
		}
		for _, name := range names {
			dir, err := objectDir(from(l.Objects[i], name))
			switch {
			case err != nil:
				l.Unread = append(l.Unread, fmt.Sprintf("%s cannot be used: %v", file, err))
			case slices.Contains(l.Objects, dir):
			case len(l.Objects) == maxObjectDirs:
				l.Unread = append(l.Unread, fmt.Sprintf("%s names more than %d directories", file, maxObjectDirs))
				return
			default:
				l.Objects = append(l.Objects, dir)
			}
		}
	}
}

// alternates returns the paths in an alternates file.
func alternates(file string) ([]string, error) {
	content, err := readFile(file, maxAlternatesBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.SplitSeq(content, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if name, ok := unquoted(line); ok {
			line = name
		}
		names = append(names, line)
	}
	return names, nil
}

// readLine returns the content of a file that holds one line.
func readLine(name string) (string, error) {
	content, err := readFile(name, maxLineBytes)
	return strings.TrimSpace(content), err
}

// readFile returns the content of a regular file. Links are not followed.
func readFile(name string, most int64) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return "", err
	}
	if int64(len(content)) > most {
		return "", fmt.Errorf("%s is larger than %d KiB", name, most>>10)
	}
	return string(content), nil
}

func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
