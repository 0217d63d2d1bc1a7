package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wordsFile lists words to avoid, each with a better one.
const wordsFile = ".ci/words.txt"

// TestWords: nobody who knows the field stumbles over a word in code, messages or docs.
func TestWords(t *testing.T) {
	root := filepath.Join("..", "..")
	banned := readWords(t, filepath.Join(root, filepath.FromSlash(wordsFile)))
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "bin" || name == ".git"):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || !slices.Contains([]string{".go", ".md", ".yaml", ".txt", ".txtar", ".sh"}, filepath.Ext(name)):
			return nil
		case strings.HasSuffix(filepath.ToSlash(path), "/"+wordsFile):
			return nil
		}
		text, err := os.ReadFile(path)
		files++
		for word, better := range banned {
			for _, at := range word.FindAllIndex(text, -1) {
				t.Errorf("%s:%d: %q: write %s", path, 1+bytes.Count(text[:at[0]], []byte("\n")), text[at[0]:at[1]], better)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 || len(banned) < 8 {
		t.Errorf("%d files were searched for %d words", files, len(banned))
	}
}

func readWords(t *testing.T, file string) map[*regexp.Regexp]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	words := map[*regexp.Regexp]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, better, found := strings.Cut(line, "\t")
		if !found {
			t.Fatalf("%s: no better word: %s", file, line)
		}
		words[regexp.MustCompile(word)] = better
	}
	return words
}
