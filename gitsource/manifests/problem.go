package manifests

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

// Problem is one problem in a declaration.
type Problem struct {
	// File is relative to the root of the source.
	File string
	// Line is the line in File, or 0 if unknown.
	Line int
	// Message states what is wrong and what would be correct.
	Message string
	// Cluster is the namespace/name of the cluster that the problem concerns, if known: the cluster is declared, but
	// invalid.
	Cluster string
}

// String returns file:line: message.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

const (
	// maxMessage is the maximum length of a message in bytes. Parts of a message come from the source.
	maxMessage = 1000
	// maxProblems is the maximum number of problems reported for one cluster, and for everything that is not a cluster.
	maxProblems = 100
	// allProblems is the maximum number of problems reported for all clusters together, in addition to one for each
	// cluster.
	allProblems = 1000
)

// andMore is appended to the last reported problem if more problems are left out.
const andMore = " (and more)"

// presentable sorts problems, removes duplicates, and makes their text safe to print, because parts of it come from the
// source. At least one problem of every cluster is kept.
func presentable(problems []Problem) []Problem {
	for i, p := range problems {
		problems[i].File, problems[i].Message, problems[i].Cluster = printable.Text(p.File),
			shortened(printable.Text(hinted(p.Message))), shortened(printable.Text(p.Cluster))
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Message, b.Message), cmp.Compare(a.Cluster, b.Cluster))
	})
	return firstOfEach(slices.Compact(problems))
}

// firstOfEach keeps the first problems of each cluster, and marks where problems are left out.
func firstOfEach(problems []Problem) []Problem {
	count := map[string]int{}
	var kept []Problem
	for _, p := range problems {
		switch count[p.Cluster]++; {
		case count[p.Cluster] < maxProblems:
			kept = append(kept, p)
		case count[p.Cluster] == maxProblems:
			p.Message += andMore
			kept = append(kept, p)
		}
	}
	return kept
}

var variable = regexp.MustCompile(`\$\{[A-Za-z_]`)

// hinted adds a hint that variables are not substituted if the message contains a variable.
func hinted(message string) string {
	if !variable.MatchString(message) {
		return message
	}
	return message + "; variables such as ${NAME} are not substituted: substitute them beforehand, or use " +
		"replacements in a kustomization"
}

// shortened removes the middle of a long text, because the cause is at its start or its end.
func shortened(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	start, end := s[:maxMessage*3/4], s[len(s)-maxMessage/4:]
	return strings.ToValidUTF8(start, "") + " ... " + strings.ToValidUTF8(end, "")
}
