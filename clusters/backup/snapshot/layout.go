package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// layoutDepth is the number of levels below the root of a volume that are searched for data directories.
	layoutDepth = 2
	// layoutEntries is the maximum number of entries in a searched directory.
	layoutEntries = 1000
)

// ErrLayout is returned for a volume whose data directory cannot be identified.
var ErrLayout = errors.New("specify the path of the data directory")

// FindDataDir returns the data directory on a volume of unknown origin. If path is empty, this is the only directory
// with a member in the volume's root or up to two levels below it. Links are not followed, and hidden directories are
// not searched. It returns ErrLayout unless there is exactly one data directory.
func FindDataDir(volume, path string) (string, error) {
	if path != "" {
		return dirIn(volume, path)
	}
	found, err := dataDirsIn(volume, layoutDepth)
	if err != nil {
		return "", fmt.Errorf("find the data directory in %s: %w", volume, err)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("neither %s nor a directory up to %d levels below it contains member/wal and "+
			"member/snap; %w", volume, layoutDepth, ErrLayout)
	}
	return "", fmt.Errorf("%s contains %d data directories: %s; %w", volume, len(found), strings.Join(found, ", "),
		ErrLayout)
}

// dirIn returns a directory below dir. It returns an error if a part of the path is a link.
func dirIn(dir, path string) (string, error) {
	for _, part := range strings.Split(path, "/") {
		dir = filepath.Join(dir, part)
		switch info, err := os.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("%s does not exist; %w", dir, ErrLayout)
		case err != nil:
			return "", err
		case !info.IsDir():
			return "", fmt.Errorf("%s is not a directory; %w", dir, ErrLayout)
		}
	}
	return dir, nil
}

// dataDirsIn returns the directories with a member, down to the given number of levels below dir.
func dataDirsIn(dir string, levels int) (found []string, err error) {
	switch err := hasDirectories(dir); {
	case err == nil:
		found = append(found, dir)
	case !errors.Is(err, ErrNoMember):
		return nil, err
	}
	if levels == 0 {
		return found, nil
	}
	subdirectories, err := subdirectoriesOf(dir)
	for _, sub := range subdirectories {
		if len(found) > 0 && sub == member {
			continue
		}
		more, err := dataDirsIn(filepath.Join(dir, sub), levels-1)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, err
}

// subdirectoriesOf returns the names of the subdirectories that may contain a member, but not those of snapshots and of
// the file system itself.
func subdirectoriesOf(dir string) (names []string, err error) {
	opened, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	entries, err := opened.ReadDir(layoutEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && len(entries) == layoutEntries {
		err = fmt.Errorf("%s has at least %d entries; %w", dir, layoutEntries, ErrLayout)
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && !strings.HasPrefix(name, ".") && name != "lost+found" {
			names = append(names, name)
		}
	}
	return names, err
}
