package manifests

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"quorate.dev/quorate/visible"
)

// Problem is one thing that is wrong with what is declared.
type Problem struct {
	// File is relative to the root of the source.
	File string
	// Line in it; 0 if it is unknown.
	Line int
	// Message says what is wrong and what would be right.
	Message string
	// Cluster is namespace/name of the cluster that the problem is about, where that is
	// known: it is declared, and broken.
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
	// maxMessage is how many bytes of a message are told: parts of it come from the source.
	maxMessage = 1000
	// maxProblems is how many problems are told of one cluster, and of all that is no cluster.
	maxProblems = 100
	// allProblems is how many are told of all clusters, besides one of each.
	allProblems = 1000
)

// andMore ends the last problem that is told where there are more.
const andMore = " (and there is more)"

// presentable puts problems in their order, each once, and makes their text fit to print: parts of
// it come from the source. No cluster that has problems is left out.
func presentable(problems []Problem) []Problem {
	for i, p := range problems {
		problems[i].File, problems[i].Message, problems[i].Cluster = visible.Text(p.File),
			shortened(visible.Text(hinted(p.Message))), shortened(visible.Text(p.Cluster))
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Message, b.Message), cmp.Compare(a.Cluster, b.Cluster))
	})
	return firstOfEach(slices.Compact(problems))
}

// firstOfEach keeps the first problems of each cluster, and says where there are more.
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

// hinted says that variables are none here, where one is refused.
func hinted(message string) string {
	if !variable.MatchString(message) {
		return message
	}
	return message + "; variables such as ${NAME} are not substituted here: do that before, or use the replacements " +
		"of a kustomization"
}

// shortened cuts a text that is too long in the middle: what was wrong stands at its start or at
// its end.
func shortened(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	start, end := s[:maxMessage*3/4], s[len(s)-maxMessage/4:]
	return strings.ToValidUTF8(start, "") + " ... " + strings.ToValidUTF8(end, "")
}
