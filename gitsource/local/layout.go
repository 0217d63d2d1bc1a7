// Package local reads git repositories on this machine in place, in every layout that git uses: bare, with worktrees,
// and with objects borrowed from other repositories. It does not run programs or write files.
package local

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ErrNotRepository is returned for a directory that is not a git directory and does not contain one.
var ErrNotRepository = errors.New("not a git repository")

const (
	// maxLineBytes is the maximum size of files that contain only a path.
	maxLineBytes = 4 << 10
	// maxAlternatesBytes is the maximum size of an objects/info/alternates file.
	maxAlternatesBytes = 64 << 10
	// maxObjectDirs is the maximum number of object directories of one repository.
	maxObjectDirs = 100
)

// Layout lists the directories of a repository.
type Layout struct {
	// Dir is the git directory, and Common is the git directory that all worktrees share. They are the same unless the
	// repository is a linked worktree.
	Dir, Common string
	// Objects lists the object directories: the repository's own, and then the directories of the repositories that it
	// borrows from.
	Objects []string
	// Around lists the files that Find read from the enclosing repository, if any.
	Around []string
	// Unread lists the reasons why objects are not borrowed as objects/info/alternates specifies.
	Unread []string
}

// Find returns the layout of the repository at location, which is a git directory or the directory that contains .git.
// Files in location, which may come from a commit or an archive, cannot redirect Find to a different git directory,
// unless that directory names location in turn. Only objects can be borrowed from other repositories. Around may be set
// even if an error is returned.
func Find(location string) (Layout, error) {
	location, err := filepath.Abs(location)
	if err == nil {
		location, err = filepath.EvalSymlinks(location)
	}
	if err != nil {
		return Layout{}, err
	}
	var l Layout
	if l.Dir, err = gitDir(location); err != nil {
		return Layout{}, err
	}
	if l.Common, err = commonDir(l.Dir); err != nil {
		return Layout{}, err
	}
	if err := l.check(location); err != nil {
		return Layout{Around: l.Around}, err
	}
	own, err := objectDir(filepath.Join(l.Common, "objects"))
	if err != nil {
		return Layout{}, err
	}
	l.Objects = []string{own}
	l.borrow()
	return l, nil
}

// check returns an error unless the git directory of l belongs to location. It sets Around.
func (l *Layout) check(location string) (err error) {
	dot := filepath.Join(location, ".git")
	switch is := isGitDir(l.Common); {
	case is && l.Dir == location:
		l.Around, err = refuseTracked(l.Dir)
		return err
	case is && l.Dir != dot:
		named, err := l.names(location)
		if err == nil && !named {
			err = fmt.Errorf("its .git refers to %s, which does not refer back to this worktree; "+
				"if the worktree was moved, run git worktree repair; after git clone --separate-git-dir, run "+
				"git config core.worktree with the path of the worktree", l.Dir)
		}
		return err
	case is:
		return nil
	case l.Dir == location:
		return ErrNotRepository
	case l.Dir == dot:
		return errors.New("its .git is not a git directory")
	}
	return fmt.Errorf("its .git refers to %s, which is not a git directory; "+
		"if the repository was moved, run git worktree repair", l.Dir)
}

// Paths returns all directories of the layout, and the other files that Find reads.
func (l Layout) Paths() []string {
	return slices.Concat([]string{l.Dir, l.Common}, l.Objects, l.Around)
}

// gitDir returns the git directory at location. If .git is a file or a symlink, it names the git directory.
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
	return resolved(from(location, named)), nil
}

// commonDir returns the git directory that dir shares with the other worktrees. It returns dir itself unless dir is the
// git directory of a linked worktree, which git keeps below the shared directory.
func commonDir(dir string) (string, error) {
	file := filepath.Join(dir, "commondir")
	named, err := readLine(file)
	if err != nil {
		return dir, nil //nolint:nilerr // only linked worktrees have the file
	}
	common := resolved(from(dir, named))
	isOf := filepath.Dir(dir) == filepath.Join(common, "worktrees")
	if !isOf || !isRegular(filepath.Join(dir, "HEAD")) || !isGitDir(common) {
		return "", fmt.Errorf("%s names %s, which is not the git directory of this worktree", file, common)
	}
	return common, nil
}

// refuseTracked returns an error if a git directory may be part of a commit of the enclosing repository: the author of
// the commit could use it to name other repositories. refuseTracked also returns the files that it reads.
func refuseTracked(dir string) (read []string, err error) {
	worktree := enclosing(dir)
	if worktree == "" {
		return nil, nil
	}
	tracked, index, err := isTracked(worktree, dir)
	if read = []string{index}; isRegular(filepath.Join(worktree, ".git")) {
		read = append(read, filepath.Join(worktree, ".git"))
	}
	if err != nil {
		return read, fmt.Errorf("it looks like a bare repository, but it is unknown whether the enclosing repository "+
			"%s tracks it: %w; move it elsewhere", worktree, err)
	}
	if tracked {
		return read, fmt.Errorf("it looks like a bare repository, but the enclosing repository %s tracks it: specify "+
			"that repository, with this directory as --path, or move the directory elsewhere", worktree)
	}
	return read, nil
}

// enclosing returns the closest directory around dir that has a .git, or an empty string if dir is not in a worktree.
func enclosing(dir string) string {
	for filepath.Base(dir) != ".git" && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
	}
	return ""
}

// names reports whether the git directory belongs to the worktree at location.
func (l Layout) names(location string) (bool, error) {
	if l.Common != l.Dir {
		named, err := readLine(filepath.Join(l.Dir, "gitdir"))
		return err == nil && l.isLinked(named, location), err
	}
	if within(l.Dir, location) {
		return true, nil
	}
	f, err := readFormat(filepath.Join(l.Dir, "config"))
	if err != nil {
		return false, err
	}
	own, err := readFormat(filepath.Join(l.Dir, "config.worktree")) // sparse checkouts move core.worktree there
	if err != nil {
		return false, err
	}
	// git clone --separate-git-dir does not set core.worktree, so its git directory could belong to any worktree.
	worktree := cmp.Or(own.worktree, f.worktree)
	return worktree != "" && resolved(from(l.Dir, worktree)) == location, nil
}

// isLinked reports whether named, the path that the git directory of a linked worktree specifies, is the .git at
// location. named contains an old path if the repository was moved or mounted elsewhere together with a worktree inside
// it, as for git-sync.
func (l Layout) isLinked(named, location string) bool {
	dot := from(l.Dir, named)
	if filepath.Base(dot) == ".git" && resolved(filepath.Dir(dot)) == location {
		return true
	}
	main, isDot := strings.CutSuffix(l.Common, "/.git")
	return isDot && within(location, main) && location != main &&
		strings.HasSuffix(dot, strings.TrimPrefix(location, main)+"/.git")
}

// within reports whether a path is dir or below it.
func within(path, dir string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(relative)
}

// resolved returns a path with links resolved, or the path itself if it does not exist.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// isGitDir reports whether dir has the files that git requires in a git directory.
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

// objectDir returns the object directory at path, with links resolved. The directory must belong to a git directory.
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

// borrow adds the directories that objects/info/alternates names, and recursively the directories named by their
// alternates.
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
	file, err := openRegular(name, most)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, most+1)) // the file may have grown
	if err == nil && int64(len(content)) > most {
		err = tooLarge(name, most)
	}
	if err != nil {
		return "", err
	}
	return string(content), nil
}

func tooLarge(name string, most int64) error {
	return fmt.Errorf("%s is larger than %d KiB", name, most>>10)
}

// openRegular opens a regular file. It returns an error if the size exceeds most. It does not follow links, or wait for
// the other end of a pipe.
func openRegular(name string, most int64) (*os.File, error) {
	named, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !os.SameFile(info, named):
		err = fmt.Errorf("%s was replaced while it was being opened", name)
	case info.Size() > most:
		err = tooLarge(name, most)
	default:
		return file, nil
	}
	file.Close()
	return nil, err
}

func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
