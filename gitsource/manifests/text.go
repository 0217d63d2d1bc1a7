package manifests

import (
	"bytes"
	"unicode/utf8"
)

// textProblem reports why content cannot be parsed as YAML text, such as an LFS pointer or UTF-16. It returns nil if
// content can be parsed.
func textProblem(file string, content []byte) []Problem {
	switch {
	case bytes.HasPrefix(content, []byte("version https://git-lfs.github.com/spec/")):
		return []Problem{{File: file,
			Message: "is a Git LFS pointer, and LFS is not supported; commit the file itself"}}
	case bytes.HasPrefix(content, []byte{0xff, 0xfe}), bytes.HasPrefix(content, []byte{0xfe, 0xff}):
		return []Problem{{File: file, Message: "is UTF-16; save it as UTF-8"}}
	case bytes.IndexByte(content, 0) >= 0:
		return []Problem{{File: file, Line: lineAt(content, bytes.IndexByte(content, 0)),
			Message: "contains a NUL byte: it is not text"}}
	case !utf8.Valid(content):
		return []Problem{{File: file, Line: lineAt(content, invalidAt(content)),
			Message: "is not UTF-8; save it as UTF-8"}}
	default:
		return nil
	}
}

// invalidAt returns the offset of the first byte that is not valid UTF-8.
func invalidAt(content []byte) int {
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(content)
}

// lineAt returns the line of the byte at offset.
func lineAt(content []byte, offset int) int { return 1 + bytes.Count(content[:offset], []byte("\n")) }
