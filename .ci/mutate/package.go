package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/tools/go/packages"
)

// mutated is a package with all its mutants.
type mutated struct {
	dir, name string
	fset      *token.FileSet
	files     map[string]*ast.File // by path
	mutants   []mutant
}

// mutate loads the package in a directory, without its tests, and inserts all mutants.
func mutate(dir string) (*mutated, error) {
	p := &mutated{dir: dir, fset: token.NewFileSet(), files: map[string]*ast.File{}}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps,
		Dir: dir, Fset: p.fset,
		ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
			return parser.ParseFile(fset, name, text, parser.SkipObjectResolution) // without comments
		},
	}, ".")
	if err != nil {
		return nil, fmt.Errorf("load the package in %s: %w", dir, err)
	}
	if len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		return nil, fmt.Errorf("load the package in %s: %v", dir, loaded)
	}
	pkg := loaded[0]
	p.name = pkg.Name
	for _, file := range pkg.Syntax {
		path := p.fset.Position(file.Package).Filename
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the source to mutate: %w", err)
		}
		m := &mutator{
			pkg: p, file: filepath.Base(path), source: source, fset: p.fset, info: pkg.TypesInfo, self: pkg.Types,
			imports: importsOf(file),
			cases:   map[ast.Expr]bool{}, spans: map[ast.Node][2]token.Position{},
		}
		m.rewrite(file)
		p.files[path] = file
	}
	return p, nil
}

// importsOf returns the local names of the packages that a file imports, by path.
func importsOf(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // cannot happen: the compiler has accepted the path
		}
		names[path] = filepath.Base(path)
		if spec.Name != nil {
			names[path] = spec.Name.Name
		}
	}
	return names
}

// write writes the package to a directory and returns the path of an overlay file that makes the go command use it.
func (p *mutated) write(work string) (overlay string, err error) {
	replace := map[string]string{}
	add := func(path string, text []byte) error {
		replace[path] = filepath.Join(work, filepath.Base(path))
		return os.WriteFile(replace[path], text, 0o600)
	}
	for path, file := range p.files {
		var text bytes.Buffer
		// The output has neither positions nor comments, because mixed positions of old and new nodes would scatter
		// comments and line breaks.
		err = errors.Join(err, format.Node(&text, token.NewFileSet(), file), add(path, text.Bytes()))
	}
	err = errors.Join(err, add(filepath.Join(p.dir, "mutants_of_this_build.go"), fmt.Appendf(nil, beside, p.name)))
	body, encode := json.Marshal(map[string]any{"Replace": replace})
	overlay = filepath.Join(work, "overlay.json")
	if err = errors.Join(err, encode, os.WriteFile(overlay, body, 0o600)); err != nil {
		return "", fmt.Errorf("write the mutants: %w", err)
	}
	return overlay, nil
}
