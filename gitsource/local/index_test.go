package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/gittest"
)

// TestIndexIsReadLikeGit checks that the names in an index are the names that git lists, in every version and with the
// extensions that git writes.
func TestIndexIsReadLikeGit(t *testing.T) {
	long := strings.Repeat(strings.Repeat("d", 200)+"/", 15) + "file" // 3,019 bytes
	for name, commands := range map[string][][]string{
		"version 2":    {{"update-index", "--index-version", "2"}},
		"version 3":    {{"update-index", "--index-version", "3"}, {"update-index", "--skip-worktree", "a"}},
		"version 4":    {{"update-index", "--index-version", "4"}},
		"untracked":    {{"update-index", "--force-untracked-cache"}, {"status"}},
		"sparse index": {{"sparse-checkout", "set", "--cone", "--sparse-index", "dir"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := repositoryIn(t, "main")
			files := map[string]string{long: "", "other/deep/file": "", "ü": ""}
			for i := range 20 {
				files["dir/"+strings.Repeat("x", i+1)] = ""
			}
			write(t, r.Dir, files)
			write(t, r.Dir, map[string]string{"a": ""})
			r.Git("add", ".")
			r.Git("commit", "--quiet", "--message", "files")
			for _, command := range commands {
				r.Git(command...)
			}
			var read []string
			must(t, readIndex(filepath.Join(r.Dir, ".git", "index"),
				func(name []byte) { read = append(read, string(name)) }))
			list := []string{"ls-files", "-z"}
			if name == "sparse index" {
				list = append(list, "--sparse")
			}
			want := strings.Split(strings.TrimSuffix(r.Git(list...), "\x00"), "\x00")
			if !slices.Equal(read, want) {
				t.Errorf("%q, want %q", read, want)
			}
		})
	}
}

// TestSplitIndexIsRefused checks that an index with entries in another file is rejected.
func TestSplitIndexIsRefused(t *testing.T) {
	r := repositoryIn(t, "main")
	r.Git("update-index", "--split-index")
	err := readIndex(filepath.Join(r.Dir, ".git", "index"), func([]byte) {})
	if err == nil || !strings.Contains(err.Error(), `"link" is not supported`) {
		t.Errorf("error %v", err)
	}
}

// indexOf returns an index of version 4. Each name is appended to the previous name.
func indexOf(names ...string) string {
	var b bytes.Buffer
	b.WriteString("DIRC")
	_ = binary.Write(&b, binary.BigEndian, []uint32{4, uint32(len(names))})
	length := 0
	for _, name := range names {
		length += len(name)
		b.Write(make([]byte, 60))
		_ = binary.Write(&b, binary.BigEndian, uint16(min(length, 0xfff)))
		b.WriteString("\x00" + name + "\x00")
	}
	b.Write(make([]byte, hashBytes))
	return b.String()
}

// TestIndexNeedsLittleMemory checks that reading an index takes little memory even if its names are far larger than the
// index itself.
func TestIndexNeedsLittleMemory(t *testing.T) {
	short := slices.Repeat([]string{"b"}, 2000)
	for want, names := range map[string][]string{
		"a name in it is longer than 4096 bytes": append([]string{strings.Repeat("a", 256<<10)}, short...),
		"<nil>":                                  append([]string{strings.Repeat("a", 2000)}, short...),
	} {
		t.Run(want, func(t *testing.T) {
			dir := t.TempDir()
			gittest.MustWrite(t, filepath.Join(dir, "index"), indexOf(names...))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := readIndex(filepath.Join(dir, "index"), func([]byte) {})
			runtime.ReadMemStats(&after)
			if fmt.Sprint(err) != want {
				t.Errorf("error %v", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
				t.Errorf("reading it allocated %d KiB", used>>10)
			}
		})
	}
}

// TestIndexWithTooManyNamesIsRefused checks that a small index is rejected if comparing its names would take minutes.
func TestIndexWithTooManyNamesIsRefused(t *testing.T) {
	names := append([]string{strings.Repeat("a\u0300", 1300)}, make([]string, 10000)...)
	file := filepath.Join(t.TempDir(), "index")
	gittest.MustWrite(t, file, indexOf(names...))
	if err := readIndex(file, func([]byte) {}); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("error %v", err)
	}
}

// TestMalformedIndexIsRefused checks that an index that is truncated anywhere, or has other invalid content, is
// rejected.
func TestMalformedIndexIsRefused(t *testing.T) {
	valid := indexOf("a", "b", "c")
	invalid := []string{
		"", strings.Replace(valid, "DIRC", "DIRX", 1), strings.Replace(valid, "\x04", "\x05", 1),
		strings.Replace(valid, "\x00a\x00", "\x01a\x00", 1), strings.Replace(valid, "\x00a\x00", "\xff\xff\xff\xff", 1),
	}
	for i := range valid {
		invalid = append(invalid, valid[:i])
	}
	for _, content := range invalid {
		file := filepath.Join(t.TempDir(), "index")
		gittest.MustWrite(t, file, content)
		if readIndex(file, func([]byte) {}) == nil {
			t.Errorf("%q was accepted", content)
		}
	}
}
