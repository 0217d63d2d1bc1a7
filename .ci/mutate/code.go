package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// pick returns a call to one of the functions in beside, instantiated for type t.
func (m *mutator) pick(function string, t types.Type, args ...ast.Expr) ast.Expr {
	if isUntyped(t) {
		t = types.Default(t)
	}
	name := types.TypeString(t, func(p *types.Package) string {
		if p == m.self {
			return ""
		}
		if m.imports[p.Path()] == "" {
			m.imports[p.Path()] = p.Name()
			m.missing = append(m.missing, p.Path())
		}
		return m.imports[p.Path()]
	})
	return call("mutant_"+function+"["+strings.TrimPrefix(name, ".")+"]", args...)
}

// imported returns an import declaration. A mutant needs the import if it names a type of a package that its file uses
// but does not import.
func imported(path string) ast.Decl {
	return &ast.GenDecl{Tok: token.IMPORT,
		Specs: []ast.Spec{&ast.ImportSpec{Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(path)}}}}
}

// beside is the template for the file with the functions that the rewritten code calls.
const beside = `package %s

import (
	"os"
	"strconv"
)

var mutant_, _ = strconv.Atoi(os.Getenv("` + variable + `"))

func mutant_pick[T any](number int, mutated, original T) T {
	if mutant_ == number {
		return mutated
	}
	return original
}

func mutant_unmet[T ~string](number int, original T) T {
	if mutant_ == number {
		return "\x00"
	}
	return original
}
`

// variable is the environment variable that selects the active mutant.
const variable = "MUTANT"

func isOn(number ast.Expr) ast.Expr {
	return &ast.BinaryExpr{X: ast.NewIdent("mutant_"), Op: token.EQL, Y: number}
}
func isOff(number ast.Expr) ast.Expr {
	return &ast.BinaryExpr{X: ast.NewIdent("mutant_"), Op: token.NEQ, Y: number}
}

func and(x, y ast.Expr) ast.Expr {
	return &ast.ParenExpr{X: &ast.BinaryExpr{X: &ast.ParenExpr{X: x}, Op: token.LAND, Y: &ast.ParenExpr{X: y}}}
}

func or(x, y ast.Expr) ast.Expr {
	return &ast.ParenExpr{X: &ast.BinaryExpr{X: &ast.ParenExpr{X: x}, Op: token.LOR, Y: &ast.ParenExpr{X: y}}}
}

func not(x ast.Expr) ast.Expr { return &ast.UnaryExpr{Op: token.NOT, X: &ast.ParenExpr{X: x}} }

func call(function string, args ...ast.Expr) ast.Expr {
	return &ast.CallExpr{Fun: ast.NewIdent(function), Args: args}
}

func unparen(n ast.Node) ast.Node {
	if e, ok := n.(ast.Expr); ok {
		return ast.Unparen(e)
	}
	return n
}
