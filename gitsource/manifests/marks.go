package manifests

import (
	"bytes"
)

// crowded finds the first document with more than most marks. It returns the offsets of the document and of the first
// excess mark, or -1 for both. Marks are the characters that begin values. A document has at least as many nodes as
// marks. Marks are counted before parsing, because a parsed node takes a hundred times as much memory. Marks inside
// text are skipped if the start of the text shows that it is text. If marks are skipped by mistake, parsing only takes
// more memory in the child, which has its own limit.
func crowded(content []byte, most int) (start, mark int) {
	count := 0
	for i := 0; i < len(content); i++ {
		atStart := i == 0 || content[i-1] == '\n'
		switch c := content[i]; {
		case atStart && isBoundary(content[i:]):
			start, count, i = i, 0, i+2
		case c == '[', c == '{', c == ',', c == ':' && endsKey(content, i),
			(c == '-' || c == '?') && isBlankAt(content, i+1):
			if count++; count > most {
				return start, i
			}
		case c == '#' && isBlankAt(content, i-1):
			i += lineLength(content[i:]) - 1
		case (c == '"' || c == '\'') && (isBlankAt(content, i-1) || bytes.IndexByte([]byte("[{,:"), content[i-1]) >= 0):
			i += quotedLength(content[i:]) - 1
		case (c == '|' || c == '>') && isBlankAt(content, i-1):
			i += blockLength(content, i) - 1
		}
	}
	return -1, -1
}

// isBoundary reports whether content starts with a line that separates documents.
func isBoundary(content []byte) bool {
	return (bytes.HasPrefix(content, []byte("---")) || bytes.HasPrefix(content, []byte("..."))) && isBlankAt(content, 3)
}

// endsKey reports whether the colon at i can separate a key and its value. The colon of a URL cannot.
func endsKey(content []byte, i int) bool {
	return isBlankAt(content, i+1) || bytes.IndexByte([]byte(",[]{}"), content[i+1]) >= 0 ||
		i > 0 && bytes.IndexByte([]byte("\"']}"), content[i-1]) >= 0
}

// isBlankAt reports whether the byte at i is a space, a tab or a line break, or i is outside the content.
func isBlankAt(content []byte, i int) bool {
	return i < 0 || i >= len(content) || bytes.IndexByte([]byte(" \t\r\n"), content[i]) >= 0
}

// lineLength returns the length of the first line of content, without its line break.
func lineLength(content []byte) int {
	if i := bytes.IndexByte(content, '\n'); i >= 0 {
		return i
	}
	return len(content)
}

// quotedLength returns the length of the quoted text at the start of content.
func quotedLength(content []byte) int {
	for i := 1; i < len(content); i++ {
		switch {
		case content[i] == content[0]:
			return i + 1
		case content[i] == '\\' && content[0] == '"':
			i++
		}
	}
	return len(content)
}

// blockLength returns the length of the block of text whose header is at i. The block consists of the lines that are
// indented more than the header's line. It returns 1 if there is no header at i.
func blockLength(content []byte, i int) int {
	end := i + lineLength(content[i:])
	header, _, _ := bytes.Cut(content[i+1:end], []byte(" #"))
	if len(bytes.Trim(header, "+-0123456789 \t\r")) > 0 {
		return 1
	}
	indent := indentation(content[bytes.LastIndexByte(content[:i], '\n')+1:])
	for end < len(content) {
		line := content[end+1:]
		line = line[:lineLength(line)]
		if len(bytes.TrimSpace(line)) > 0 && indentation(line) <= indent {
			break
		}
		end += 1 + len(line)
	}
	return end - i
}

// indentation returns the number of spaces at the start of a line.
func indentation(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }
