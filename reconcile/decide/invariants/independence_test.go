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
	// standard lists the packages that invariants may use.
	standard = []string{"fmt", "regexp", "slices", "strconv", "time"}
	// judged lists the functions of package decide that invariants may call: conversions, and the records that actions
	// write, which the invariants judge.
	judged = []string{"Action", "Alarm", "ID", "RequiredRecord", "SealedRecord", "RestoredRecord", "RecoveredRecord"}
	// methods lists the methods that invariants may call: methods of times, regular expressions and invariants, not of
	// rules.
	methods = []string{"FindStringSubmatch", "IsZero", "Sub", "broken"}
)

// TestInvariantsShareNoCodeWithRules checks that invariants do not call helpers of the rules.
func TestInvariantsShareNoCodeWithRules(t *testing.T) {
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
					t.Errorf("%s: an invariant must not call %s", fset.Position(call.Pos()), called.Sel.Name)
				}
			}
			return true
		})
	}
	if calls == 0 {
		t.Error("no calls were found")
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
