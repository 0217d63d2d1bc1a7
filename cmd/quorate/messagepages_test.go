package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var namedPage = regexp.MustCompile(`docs/[a-z/-]+\.md(?:#[a-z0-9-]+)?`)

// TestMessagesNameExistingPages checks that messages refer only to existing pages and existing files in deploy.
func TestMessagesNameExistingPages(t *testing.T) {
	root, named := filepath.Join("..", ".."), 0
	eachFile(t, func(path, content string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, page := range namedPage.FindAllString(content, -1) {
			named++
			file, anchor, _ := strings.Cut(page, "#")
			if _, err := os.Stat(filepath.Join(root, file)); err != nil || anchor != "" && !slices.Contains(anchors(t, file), anchor) {
				t.Errorf("%s: %s has no target", path, page)
			}
		}
	}, ".go")
	if named < 4 {
		t.Errorf("%d pages are named", named)
	}
	for _, path := range []string{"deploy/tenants", "deploy/base/rbac.yaml", "deploy/plan-rbac.yaml"} {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil {
			t.Error(err)
		}
	}
}
