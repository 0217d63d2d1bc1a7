package gitsource

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// read reads what the directory o.Path declares. With a kustomization at its root it is
// rendered; otherwise each YAML and JSON file below it is read as it is.
func read(ctx context.Context, fsys fs.FS, o Options) (Desired, error) {
	f := &files{ctx: ctx, fs: fsys}
	if err := f.checkDirectory(o.Path); err != nil {
		return Desired{}, sourceError(err, "read the path %q of %s", o.Path, o.Location)
	}
	entries, err := f.list(o.Path)
	if err != nil {
		return Desired{}, sourceError(err, "read the path %q of %s", o.Path, o.Location)
	}
	var objects []object
	var problems []Problem
	if slices.ContainsFunc(entries, isKustomization) {
		objects, problems = f.render(o.Path)
	} else {
		objects, problems = f.walk(o.Path, 0)
	}
	if err := cmp.Or(ctx.Err(), f.exceeded); err != nil {
		return Desired{}, sourceError(err, "read the path %q of %s", o.Path, o.Location)
	}
	clusters, more := decode(objects, o.Namespace)
	return Desired{Clusters: clusters, Problems: sortProblems(append(problems, more...))}, nil
}

// walk reads the files of a directory and those below it. Hidden files and directories
// are left out: they configure tools.
func (f *files) walk(dir string, depth int) (objects []object, problems []Problem) {
	entries, err := f.list(dir)
	if err != nil {
		return nil, []Problem{{File: dir, Message: err.Error()}}
	}
	if i := slices.IndexFunc(entries, isKustomization); i >= 0 && depth > 0 {
		return nil, []Problem{{File: path.Join(dir, entries[i].Name()), Message: nestedKustomization}}
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		o, p := f.visit(path.Join(dir, entry.Name()), entry.Type(), depth+1)
		objects, problems = append(objects, o...), append(problems, p...)
	}
	return objects, problems
}

const nestedKustomization = "a kustomization is rendered only if it is at the root of the path; " +
	"name its directory as the path, or add a kustomization at the root that has it among its resources"

func (f *files) visit(name string, kind fs.FileMode, depth int) ([]object, []Problem) {
	switch {
	case kind.IsDir() && depth > maxDepth:
		return nil, []Problem{{File: name, Message: "is nested too deep"}}
	case kind.IsDir():
		return f.walk(name, depth)
	case !kind.IsRegular():
		return nil, []Problem{{File: name, Message: "is " + kindOf(kind) + ", which is not followed"}}
	case !isManifest(name):
		return nil, nil
	}
	content, err := f.read(name)
	if err != nil {
		return nil, []Problem{{File: name, Message: err.Error()}}
	}
	return f.parse(name, content)
}

func isManifest(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}

func isKustomization(e fs.DirEntry) bool { return isKustomizationName(e.Name()) }
