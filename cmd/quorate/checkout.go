package main

import (
	"os"
	"path/filepath"

	"quorate.dev/quorate/gitsource/remote"
)

// rootsIn tells where in a checkout the files of a source are, which a report names as it does; see findings.Options.
// Those of a repository on a server are in it as they are there, if it is the only source: a pipeline reads the
// repository that it has checked out. Those of a directory are where that is.
func (f *sourceFlags) rootsIn(checkout string) func(name string) (path string, known bool) {
	sources, _ := f.sources(func(source) error { return nil }) // which were checked before
	return func(name string) (string, bool) {
		for i, s := range sources {
			switch {
			case len(sources) > 1 && f.values[i] != name:
			case remote.IsAddress(s.location):
				return "", len(sources) == 1
			default:
				return pathIn(checkout, s.location)
			}
		}
		return "", false
	}
}

// pathIn is a directory relative to one that it is in, with slashes.
func pathIn(checkout, dir string) (string, bool) {
	root, err := filepath.Abs(checkout)
	if err != nil {
		return "", false
	}
	inside, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	path, err := filepath.Rel(root, inside)
	if err != nil || !filepath.IsLocal(path) {
		return "", false
	}
	return filepath.ToSlash(path), true
}

// checkout is the directory that a pipeline has checked the repository out to: files in annotations are named from
// there.
func checkout() string {
	if dir := os.Getenv("GITHUB_WORKSPACE"); dir != "" {
		return dir
	}
	return "."
}
