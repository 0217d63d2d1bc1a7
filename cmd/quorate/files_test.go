package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// eachFile calls show with the path and content of each file in the repository that has one of the extensions. It skips
// build output and git's own files.
func eachFile(t *testing.T, show func(path, content string), extensions ...string) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "bin" || entry.Name() == ".git"):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || !slices.Contains(extensions, filepath.Ext(path)):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		path, err = filepath.Rel(root, path)
		show(filepath.ToSlash(path), string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
