package main

import (
	"os"
	"path/filepath"

	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/sources"
)

// rootsIn returns a function that maps the name of a source in a report to the directory of its files in a checkout;
// see findings.Options. If the only source is a repository on a server, that repository is assumed to be the checkout
// itself. Pipelines usually read the repository that they have checked out. A local directory is used directly.
func (f *sourceFlags) rootsIn(checkout string) func(name string) (path string, known bool) {
	list, _ := f.parsed() // the flags were checked before
	labels := sources.Labels(plain(list))
	return func(name string) (string, bool) {
		for i, s := range list {
			switch {
			case len(list) > 1 && labels[i] != name:
			case remote.IsAddress(s.Location):
				return "", len(list) == 1
			default:
				return pathIn(checkout, s.Location)
			}
		}
		return "", false
	}
}

// pathIn returns the path of dir relative to checkout, with slashes. It returns false if dir is not inside checkout.
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

// checkout returns the directory into which the pipeline has checked out the repository. File names in annotations are
// relative to this directory.
func checkout() string {
	if dir := os.Getenv("GITHUB_WORKSPACE"); dir != "" {
		return dir
	}
	return "."
}
