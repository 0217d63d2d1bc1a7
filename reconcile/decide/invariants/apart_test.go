package invariants

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	// standard are the packages that everybody may use.
	standard = []string{"fmt", "regexp", "slices", "strconv", "time"}
	// judged is what is called of package decide: conversions, and what an action writes, which is
	// what the invariants judge.
	judged = []string{"Action", "Alarm", "ID", "StandingRecord", "SealedRecord", "RestoredRecord", "RecoveredRecord"}
	// methods are those that are called: of times and of regular expressions, and none of the
	// rules' own.
	methods = []string{"FindStringSubmatch", "IsZero", "Sub", "broken"}
)

// TestApart: no invariant calls what a rule calls.
func TestApart(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			if called, is := call.Fun.(*ast.SelectorExpr); is {
				calls++
				if !mayCall(called) {
					t.Errorf("%s: %s is not for an invariant to call", fset.Position(call.Pos()), called.Sel.Name)
				}
			}
			return true
		})
	}
	if calls == 0 {
		t.Error("no call was found")
	}
}

func mayCall(called *ast.SelectorExpr) bool {
	of, _ := called.X.(*ast.Ident)
	switch {
	case of != nil && of.Name == "decide":
		return slices.Contains(judged, called.Sel.Name)
	case of != nil && slices.Contains(standard, of.Name):
		return true
	}
	return slices.Contains(methods, called.Sel.Name)
}
