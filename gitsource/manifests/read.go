// Package manifests reads the EtcdClusters declared in files: plain YAML, or a kustomization, decoded strictly.
//
// Problems with the content are returned as data: the problems of all files, along with the valid clusters. The content
// is trusted for intent, not for safety. Files are read into memory, symbolic links are not followed, nothing is
// executed or fetched, and sizes are limited. All parsing happens in a child process (confined).
package manifests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/gitsource/manifests/confined"
)

// Options specify what to read and how.
type Options struct {
	// Path is the directory to read, relative to the root. The default is the root.
	Path string
	// Namespace is the namespace of objects that do not set a namespace. The default is "default".
	Namespace string
	// AllowNamespaces lists the namespaces in which clusters may be declared. If it is empty, all namespaces are
	// allowed.
	AllowNamespaces []string
	// Policy limits what clusters may request. If AllowNamespaces is set, defaults limit everything that Policy does
	// not limit.
	Policy policy.Policy
	// IgnoreOtherKinds skips objects that are not EtcdClusters. Otherwise, they are reported as problems.
	IgnoreOtherKinds bool
	Limits           Limits
}

// Declarations is the content of a source's files.
type Declarations struct {
	// Clusters are the clusters without problems, sorted by namespace and name.
	Clusters []Declared
	// Problems lists the problems found in all files, sorted by file and line. Clusters does not contain the clusters
	// that a Problem names. If a Problem does not name a cluster, other declared clusters may be missing too.
	Problems []Problem
}

// Declared is one declared cluster.
type Declared struct {
	// Cluster has its defaults, namespace and TypeMeta set.
	Cluster v1alpha1.EtcdCluster
	// Applied is the object as written, without defaults, for server-side apply: apiVersion, kind, metadata (name,
	// namespace, labels, annotations) and spec, in JSON types, with integers as int64.
	Applied map[string]any
	// File is relative to the root of the source. Line is the line in File at which the object starts, or 0 if unknown.
	File string
	Line int
	// Lines holds the known lines of the fields that are checked later, by path.
	Lines map[string]int
	// Warnings concern valid settings that may not be intended.
	Warnings []string
}

// MissingError reports that the directory to read, or one of its parents, does not exist.
type MissingError struct{ Name string }

func (e MissingError) Error() string { return "path " + e.Name + " does not exist" }

// Read reads the declarations in the directory o.Path. If the directory contains a kustomization, it is rendered;
// otherwise each YAML and JSON file below it is read as is. An error means that the directory cannot be read or exceeds
// a limit, so the declarations are unknown. A MissingError means that the directory does not exist. Read returns when
// ctx ends. The files are parsed in a child process.
func Read(ctx context.Context, fsys fs.FS, o Options) (Declarations, error) {
	return ReadFrom(ctx, Answers(fsys, o.Limits), o)
}

// ReadFrom is like Read, but reads the files through tell, which answers one question at a time.
func ReadFrom(ctx context.Context, tell func(Question) Answer, o Options) (Declarations, error) {
	o = o.withDefaults()
	r := reading{ctx: ctx, tell: tell, options: o, doing: "reading", at: o.Path}
	limits := confined.Limits{Memory: o.Limits.RenderMemory, CPU: o.Limits.RenderCPU, LineBytes: maxLine(o.Limits)}
	err := confined.Run(ctx, childName, o, limits, r.hear)
	var exceeded confined.Exceeded
	if errors.As(err, &exceeded) {
		return Declarations{Problems: presentable(
			[]Problem{{File: r.at, Message: r.doing + " it " + exceeded.Error()}})}, nil
	}
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return Declarations{}, err
	}
	return r.read, nil
}

func (o Options) withDefaults() Options {
	o.Path, o.Namespace, o.Limits = cmp.Or(o.Path, "."), cmp.Or(o.Namespace, "default"), o.Limits.orDefault()
	return o
}

// take reads the declarations in this process. It returns the clusters without problems, sorted by namespace and name,
// and all problems. It calls rendering with the name of a kustomization before rendering it.
func take(ctx context.Context, t tree, o Options, rendering func(root string)) ([]wireCluster, []Problem, error) {
	if !fs.ValidPath(o.Path) {
		return nil, nil, fmt.Errorf("the path %q is outside of the source", o.Path)
	}
	f := &files{ctx: ctx, tree: t, options: o, limits: o.Limits, rendering: rendering}
	if err := f.checkDirectory(o.Path); err != nil {
		return nil, nil, err
	}
	entries, err := f.list(o.Path)
	if err != nil {
		return nil, nil, err
	}
	declarations, problems, err := f.readDeclarations(o.Path, slices.ContainsFunc(entries, isKustomization))
	if err := cmp.Or(ctx.Err(), f.exceeded, err); err != nil {
		return nil, nil, err
	}
	clusters, more := settle(declarations)
	return clusters, presentable(append(problems, more...)), nil
}

func (f *files) readDeclarations(
	dir string, kustomized bool,
) (declarations []*declaration, problems []Problem, err error) {
	if kustomized {
		return f.render(dir)
	}
	declarations, problems = f.walk(dir, 0)
	return declarations, problems, nil
}

// walk reads the files of a directory and its subdirectories. Hidden files and directories are skipped, because they
// configure tools.
func (f *files) walk(dir string, depth int) (declarations []*declaration, problems []Problem) {
	entries, err := f.list(dir)
	if err != nil {
		return nil, []Problem{{File: dir, Message: err.Error()}}
	}
	if i := slices.IndexFunc(entries, isKustomization); i >= 0 && depth > 0 {
		return nil, []Problem{{File: path.Join(dir, entries[i].Name), Message: nestedKustomization}}
	}
	for _, entry := range entries {
		if strings.HasPrefix(strings.TrimPrefix(entry.Name, `"`), ".") {
			continue
		}
		if entry.Unsupported {
			problems = append(problems, unsupportedName(dir, entry)...)
			continue
		}
		d, p := f.visit(path.Join(dir, entry.Name), entry.Type, depth+1)
		declarations, problems = append(declarations, d...), append(problems, p...)
		if f.exceeded != nil {
			break
		}
	}
	return declarations, problems
}

// unsupportedName returns a problem for an entry that would be read if its name were supported.
func unsupportedName(dir string, e entry) []Problem {
	if !e.matters() {
		return nil
	}
	return []Problem{{File: dir, Message: "contains " + e.Name + ", which has an unsupported name; rename it"}}
}

const nestedKustomization = "a kustomization is rendered only if it is at the root of the path; " +
	"set the path to its directory, or add a kustomization at the root that lists it in its resources"

func (f *files) visit(name string, kind fs.FileMode, depth int) ([]*declaration, []Problem) {
	switch {
	case kind.IsDir() && depth > f.limits.Depth:
		deep := fmt.Sprintf("is more than %d directories deep; use fewer levels", f.limits.Depth)
		return nil, []Problem{{File: name, Message: deep}}
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

// extensions lists the extensions of the files to read.
var extensions = []string{".yaml", ".yml", ".json"}

func isManifest(name string) bool { return slices.Contains(extensions, path.Ext(name)) }

func isKustomization(e entry) bool { return !e.Unsupported && isKustomizationName(e.Name) }
