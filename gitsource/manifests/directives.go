package manifests

import (
	"bytes"
)

// checkText checks content before it is parsed. It finds directives, which the parser cannot handle in large numbers,
// and documents with too many nodes. It returns the part before the problem, which can be parsed.
func (f *files) checkText(content []byte) (before []byte, wrong *finding) {
	if i := directiveIn(content); i >= 0 {
		return nil, &finding{lineAt(content, i),
			"has a YAML directive (a line that starts with %), which is not supported; delete the line"}
	}
	if start, mark := crowded(content, f.limits.DocumentNodes); mark >= 0 {
		return content[:start], &finding{lineAt(content, mark),
			over(settingObjects, "has more than %d nodes", f.limits.DocumentNodes)}
	}
	return content, nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// directiveIn returns the offset of the first line that starts with % and a letter, or -1.
func directiveIn(content []byte) int {
	for i := bytes.IndexByte(content, '%'); i >= 0; {
		if startsLine(content[:i]) && i+1 < len(content) && isLetter(content[i+1]) {
			return i
		}
		next := bytes.IndexByte(content[i+1:], '%')
		if next < 0 {
			return -1
		}
		i += 1 + next
	}
	return -1
}

// lineBreaks are the line breaks of YAML 1.1, which the parser recognizes.
var lineBreaks = [][]byte{[]byte("\n"), []byte("\r"), []byte("\u0085"), []byte("\u2028"), []byte("\u2029")}

// startsLine reports whether before is empty or ends with a line break. A byte order mark may precede the first line.
func startsLine(before []byte) bool {
	if len(before) == 0 || string(before) == "\ufeff" {
		return true
	}
	for _, lineBreak := range lineBreaks {
		if bytes.HasSuffix(before, lineBreak) {
			return true
		}
	}
	return false
}
