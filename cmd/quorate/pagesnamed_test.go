package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var namedPage = regexp.MustCompile(`docs/[a-z/-]+\.md(?:#[a-z0-9-]+)?`)

// What a message names of the docs, and of deploy, is there.
func TestMessagesNameWhatThereIs(t *testing.T) {
	root, named := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "bin" || entry.Name() == ".git"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, page := range namedPage.FindAllString(string(text), -1) {
			named++
			file, anchor, _ := strings.Cut(page, "#")
			if _, err := os.Stat(filepath.Join(root, file)); err != nil || anchor != "" && !slices.Contains(anchors(t, file), anchor) {
				t.Errorf("%s: %s leads nowhere", path, page)
			}
		}
		return err
	})
	if err != nil || named < 4 {
		t.Errorf("%d pages are named, %v", named, err)
	}
	for _, path := range []string{"deploy/tenants/tenant", "deploy/base/rbac.yaml", "deploy/plan-rbac.yaml"} {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil {
			t.Error(err)
		}
	}
}
