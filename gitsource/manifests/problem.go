package manifests

import (
	"cmp"
	"fmt"
	"slices"

	"quorate.dev/quorate/gitsource/visible"
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

// sortProblems puts problems in their order, each once, and makes their text fit to print:
// parts of it come from the source.
func sortProblems(problems []Problem) []Problem {
	for i, p := range problems {
		problems[i].File, problems[i].Message, problems[i].Cluster = visible.Text(p.File), visible.Text(p.Message), visible.Text(p.Cluster)
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Message, b.Message), cmp.Compare(a.Cluster, b.Cluster))
	})
	return slices.Compact(problems)
}
