package manifests

import (
	"bytes"
)

// crowded looks for the first document with more marks than most, and returns where it starts, and
// where the mark too many stands; -1 if there is none. Marks are the characters that begin values:
// a document has as many nodes as marks at least. They are counted before the parser makes nodes,
// each of which takes a hundred times as much memory. Marks in text count for nothing where it is
// told by its start that it is text; what is taken for text by mistake costs memory of the child,
// which has a bound of its own.
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

// isBoundary says whether a line that ends a document starts here.
func isBoundary(content []byte) bool {
	return (bytes.HasPrefix(content, []byte("---")) || bytes.HasPrefix(content, []byte("..."))) && isBlankAt(content, 3)
}

// endsKey says whether the colon at i can stand between a key and its value; that of a URL cannot.
func endsKey(content []byte, i int) bool {
	return isBlankAt(content, i+1) || bytes.IndexByte([]byte(",[]{}"), content[i+1]) >= 0 ||
		i > 0 && bytes.IndexByte([]byte("\"']}"), content[i-1]) >= 0
}

// isBlankAt says whether there is a space or the end of a line, or nothing.
func isBlankAt(content []byte, i int) bool {
	return i < 0 || i >= len(content) || bytes.IndexByte([]byte(" \t\r\n"), content[i]) >= 0
}

// lineLength is that of the line that starts here, up to its end.
func lineLength(content []byte) int {
	if i := bytes.IndexByte(content, '\n'); i >= 0 {
		return i
	}
	return len(content)
}

// quotedLength is that of the text in quotes that starts here.
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

// blockLength is that of a block of text whose header starts at i: the lines that are indented more
// than the line of the header. It is 1 if what is there is no header.
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

// indentation is the number of spaces that a line starts with.
func indentation(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }
