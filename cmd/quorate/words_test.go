package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wordsFile lists words to avoid, each with a better alternative.
const wordsFile = ".ci/words.txt"

// TestWords checks that code, messages and docs do not contain words that are hard to understand.
func TestWords(t *testing.T) {
	root := filepath.Join("..", "..")
	banned := readWords(t, filepath.Join(root, filepath.FromSlash(wordsFile)))
	files := 0
	eachFile(t, func(path, content string) {
		if path == wordsFile {
			return
		}
		files++
		for word, better := range banned {
			for _, at := range word.FindAllStringIndex(content, -1) {
				t.Errorf("%s:%d: %q: write %s", path, 1+strings.Count(content[:at[0]], "\n"), content[at[0]:at[1]], better)
			}
		}
	}, ".go", ".md", ".yaml", ".txt", ".txtar", ".sh")
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
