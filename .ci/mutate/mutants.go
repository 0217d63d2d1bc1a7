package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ast/astutil"
)

// The mutants are chosen so that a test that kills one mutant does not necessarily kill another:
//
//   - each condition is replaced by false, and by true, so that a guard, an early return or a
//     case never applies, or always applies;
//   - each side of an && or || is removed, which also distinguishes the operators;
//   - each bound is moved: < becomes <=;
//   - each number is increased, and decreased, by one; + becomes -, min becomes max;
//   - each assignment, call, break, continue and type switch case is removed; a constant in a
//     case never matches.
//
// All mutants are expressions that check the number of the active mutant, so that they can coexist in one program.

// mutant is a single change.
type mutant struct {
	number int
	where  string // file:line:column
	what   string
}

func (m mutant) String() string { return fmt.Sprintf("%s  #%d  %s", m.where, m.number, m.what) }

// mutator rewrites a file.
type mutator struct {
	pkg     *mutated
	file    string
	source  []byte
	fset    *token.FileSet
	info    *types.Info
	self    *types.Package
	imports map[string]string // name by path
	missing []string          // paths of packages that only mutants need
	cases   map[ast.Expr]bool // the expressions in the cases of a switch with a tag
	// spans contains the start and end of each node in the original source, because nodes that contain mutants no
	// longer have a position in that source.
	spans map[ast.Node][2]token.Position
}

// add creates a mutant of a node and returns its number as an expression.
func (m *mutator) add(node ast.Node, what string) ast.Expr {
	position := m.spans[node][0]
	number := len(m.pkg.mutants) + 1
	m.pkg.mutants = append(m.pkg.mutants, mutant{number,
		fmt.Sprintf("%s:%d:%d", m.file, position.Line, position.Column), what})
	return &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(number)}
}

// text returns the source of a node, on one line and truncated.
func (m *mutator) text(node ast.Node) string {
	span := m.spans[node]
	text := []rune(string(bytes.Join(bytes.Fields(m.source[span[0].Offset:span[1].Offset]), []byte(" "))))
	if len(text) > 80 {
		text = append(text[:79], '…')
	}
	return string(text)
}

// rewrite inserts the mutants into a file.
func (m *mutator) rewrite(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if n != nil {
			m.spans[n] = [2]token.Position{m.fset.Position(n.Pos()), m.fset.Position(n.End())}
		}
		if s, ok := n.(*ast.SwitchStmt); ok && s.Tag != nil {
			for _, clause := range s.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					m.cases[e] = true
				}
			}
		}
		return true
	})
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && (d.Tok == token.CONST && !m.variable(d) || d.Tok == token.TYPE ||
			d.Tok == token.IMPORT) {
			continue
		}
		astutil.Apply(d, nil, func(c *astutil.Cursor) bool { m.visit(c); return true })
	}
	for _, path := range m.missing {
		file.Decls = slices.Insert(file.Decls, 0, imported(path))
	}
}

// variable turns constants with numeric values into variables, so that they can be mutated, and reports whether it did
// so.
func (m *mutator) variable(d *ast.GenDecl) bool {
	numbers := true
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			numbers = numbers && n.Type == nil && len(n.Values) > 0
		case *ast.BasicLit:
			numbers = numbers && n.Kind == token.INT
		case *ast.CallExpr: // a typed constant, such as a sentinel
			numbers = false
		}
		return true
	})
	if !numbers {
		return false
	}
	d.Tok = token.VAR
	for _, spec := range d.Specs {
		spec := spec.(*ast.ValueSpec)
		for i, name := range spec.Names {
			m.settle(name, spec.Values[i])
		}
	}
	return true
}

// settle gives the value of an untyped constant the type that its uses require.
func (m *mutator) settle(name *ast.Ident, value ast.Expr) {
	for use, object := range m.info.Uses {
		if object != m.info.Defs[name] {
			continue
		}
		if t := m.info.Types[value]; isUntyped(t.Type) {
			t.Type = m.info.Types[use].Type
			m.info.Types[value] = t
		}
	}
}

func isUntyped(t types.Type) bool {
	basic, ok := t.(*types.Basic)
	return ok && basic.Info()&types.IsUntyped != 0
}

func (m *mutator) visit(c *astutil.Cursor) {
	switch n := c.Node().(type) {
	case *ast.FuncDecl:
		m.end(n.Type, n.Body)
	case *ast.FuncLit:
		m.end(n.Type, n.Body)
	case *ast.CaseClause:
		if _, ok := c.Parent().(*ast.BlockStmt); ok && m.ofTypes(n) {
			m.leaveOutCase(n)
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE && c.Index() >= 0 {
			c.Replace(m.leaveOut(n))
		}
	case *ast.IncDecStmt:
		if c.Index() >= 0 {
			c.Replace(m.leaveOut(n))
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && c.Index() >= 0 && types.ExprString(call.Fun) != "panic" {
			c.Replace(m.leaveOut(n))
		}
	case *ast.BranchStmt:
		if c.Index() >= 0 && (n.Tok == token.BREAK || n.Tok == token.CONTINUE) {
			c.Replace(m.leaveOut(n))
		}
	case ast.Expr:
		m.expression(c, n)
	}
}

// end appends a panic to a function that does not end with a return statement, so that the function compiles even if a
// mutant removes statements.
func (m *mutator) end(signature *ast.FuncType, body *ast.BlockStmt) {
	if signature.Results == nil || body == nil || len(body.List) == 0 {
		return
	}
	if _, returns := body.List[len(body.List)-1].(*ast.ReturnStmt); !returns {
		body.List = append(body.List,
			&ast.ExprStmt{X: call("panic", &ast.BasicLit{Kind: token.STRING, Value: `"nothing was returned"`})})
	}
}

// ofTypes reports whether a case belongs to a type switch.
func (m *mutator) ofTypes(n *ast.CaseClause) bool {
	return len(n.List) > 0 && m.info.Types[n.List[0]].IsType()
}

func (m *mutator) leaveOutCase(n *ast.CaseClause) {
	if len(n.Body) == 0 {
		return
	}
	number := m.add(n, "without case "+m.text(n.List[0]))
	n.Body = []ast.Stmt{&ast.IfStmt{Cond: isOff(number), Body: &ast.BlockStmt{List: n.Body}}}
}

func (m *mutator) leaveOut(n ast.Stmt) ast.Stmt {
	return &ast.IfStmt{Cond: isOff(m.add(n, "without "+m.text(n))), Body: &ast.BlockStmt{List: []ast.Stmt{n}}}
}

// expression mutates an expression that is a value but not a name.
func (m *mutator) expression(c *astutil.Cursor, e ast.Expr) {
	switch c.Name() {
	case "Lhs", "Sel", "Tag", "Key", "Type", "Fun", "Names", "Len":
		return
	}
	if _, isRange := c.Parent().(*ast.RangeStmt); isRange && c.Name() != "X" {
		return
	}
	t := m.info.Types[e]
	if !t.IsValue() || t.Type == nil {
		return
	}
	basic, _ := t.Type.Underlying().(*types.Basic)
	switch {
	case basic == nil:
	case m.cases[e]:
		if basic.Info()&types.IsString != 0 {
			c.Replace(m.pick("unmet", t.Type, m.add(e, "never met: "+m.text(e)), e))
		}
	case basic.Info()&types.IsBoolean != 0:
		m.condition(c, e, t)
	case basic.Info()&types.IsInteger != 0:
		m.number(c, e, t)
	}
}

func (m *mutator) condition(c *astutil.Cursor, e ast.Expr, t types.TypeAndValue) {
	if comparison, ok := e.(*ast.BinaryExpr); ok && t.Value == nil {
		e = m.moveBound(comparison)
	}
	original := c.Node()
	switch parent := c.Parent().(type) {
	case *ast.ParenExpr:
		c.Replace(e)
		return // the expression in the parentheses is mutated
	case *ast.UnaryExpr:
		c.Replace(e)
		return // negating the operand would give the same mutants
	case *ast.BinaryExpr:
		binary, chain := unparen(original).(*ast.BinaryExpr)
		switch {
		case parent.Op != token.LAND && parent.Op != token.LOR || chain && binary.Op == parent.Op:
			c.Replace(e)
		case parent.Op == token.LAND:
			c.Replace(or(isOn(m.add(original, "without && "+m.text(original))), e))
		default:
			c.Replace(and(isOff(m.add(original, "without || "+m.text(original))), e))
		}
		return
	}
	if t.Value != nil {
		number := m.add(original, "not "+m.text(original))
		if t.Value.String() == "true" {
			c.Replace(isOff(number))
		} else {
			c.Replace(isOn(number))
		}
		return
	}
	e = and(isOff(m.add(original, "never "+m.text(original))), e)
	if _, loop := c.Parent().(*ast.ForStmt); !loop {
		e = or(isOn(m.add(original, "always "+m.text(original))), e)
	}
	c.Replace(e)
}

// moveBound makes a comparison include or exclude its bound.
func (m *mutator) moveBound(e *ast.BinaryExpr) ast.Expr {
	equal := &ast.BinaryExpr{X: e.X, Op: token.EQL, Y: e.Y}
	switch e.Op {
	case token.LSS, token.GTR:
		return or(e, and(isOn(m.add(e, "or equal: "+m.text(e))), equal))
	case token.LEQ, token.GEQ:
		return and(e, not(and(isOn(m.add(e, "but not equal: "+m.text(e))), equal)))
	}
	return e
}

func (m *mutator) number(c *astutil.Cursor, e ast.Expr, t types.TypeAndValue) {
	switch n := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Atoi(n.Value)
		if err != nil {
			return
		}
		e = m.pick("pick", t.Type, m.add(n, fmt.Sprintf("%d for %d", value+1, value)),
			&ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(value + 1)}, e)
		if value > 0 {
			e = m.pick("pick", t.Type, m.add(n, fmt.Sprintf("%d for %d", value-1, value)),
				&ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(value - 1)}, e)
		}
		c.Replace(e)
	case *ast.BinaryExpr:
		other, ok := map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD}[n.Op]
		if !ok || t.Value != nil {
			return
		}
		c.Replace(m.pick("pick", t.Type, m.add(n, fmt.Sprintf("%s: %s", other, m.text(n))),
			&ast.BinaryExpr{X: n.X, Op: other, Y: n.Y}, e))
	case *ast.CallExpr:
		other := map[string]string{"min": "max", "max": "min"}[types.ExprString(n.Fun)]
		if other == "" || t.Value != nil {
			return
		}
		c.Replace(m.pick("pick", t.Type, m.add(n, other+": "+m.text(n)), call(other, n.Args...), e))
	}
}
