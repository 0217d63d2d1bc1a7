package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kustomize "sigs.k8s.io/kustomize/api/types"
)

// check returns the problems with a file. Kustomize must not read a file with problems.
func (k *kustomizeFS) check(name string, content []byte) []Problem {
	isYAML := isManifest(name) || isKustomizationName(path.Base(name))
	if problems := textProblem(name, content); isYAML && len(problems) > 0 {
		return problems
	}
	var problems []Problem
	for document, err := range k.files.documentsIn(content) {
		switch {
		case err != nil && isYAML:
			return []Problem{syntaxProblem(name, err)}
		case err == nil && len(problems) <= maxProblems:
			problems = append(problems, k.files.checkStructure(name, document)...)
			problems = append(problems, k.checkInline(name, document)...)
		}
	}
	if len(problems) > 0 || !isKustomizationName(path.Base(name)) {
		return problems
	}
	return k.checkKustomization(name, content)
}

// checkInline checks text values that may themselves be YAML, because kustomize decodes inline patches.
func (k *kustomizeFS) checkInline(name string, document *yaml.Node) (problems []Problem) {
	walkNodes(document, func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || !strings.Contains(n.Value, "&") || !strings.Contains(n.Value, "*") {
			return
		}
		for document, err := range k.files.documentsIn([]byte(n.Value)) {
			if err != nil || len(problems) > maxProblems {
				break
			}
			if f := k.files.checkExpansion(document); f != nil {
				problems = append(problems, Problem{File: name, Line: n.Line,
					Message: "in the text that starts on this line: " + f.message})
			}
		}
	})
	return problems
}

// checkKustomization parses a kustomization as kustomize does, and reports anything that would access data outside the
// source, run a program, or affect later renderings.
func (k *kustomizeFS) checkKustomization(name string, content []byte) []Problem {
	var kustomization kustomize.Kustomization
	if err := kustomization.Unmarshal(content); err != nil {
		return []Problem{{File: name, Message: err.Error()}}
	}
	kustomization.FixKustomization()
	var problems []Problem
	refuse := func(field, format string, args ...any) (more bool) {
		problems = append(problems, Problem{File: name, Line: lineOfText(content, field),
			Message: fmt.Sprintf(format, args...)})
		return len(problems) <= maxProblems
	}
	for _, field := range unsupportedFields(kustomization) {
		refuse(field, "%s is not supported: it can run programs, change how everything else is rendered, or never "+
			"terminate",
			field)
	}
	references := referencesOf(kustomization)
	for _, field := range slices.Sorted(maps.Keys(references)) {
		for _, reference := range references[field] {
			reason := k.refuseReference(path.Dir(name), reference)
			if reason != "" && !refuse(reference, "%s: %q %s", field, reference, reason) {
				return problems
			}
		}
	}
	return problems
}

// restOf returns the kustomization in dir, reduced to its readable resources. The result has no resources unless
// content is a single document with aliases that expand within the limits.
func (k *kustomizeFS) restOf(dir string, content []byte) []byte {
	var kustomization kustomize.Kustomization
	rest := []string{}
	if k.isOneDocument(content) {
		if err := kustomization.Unmarshal(content); err == nil {
			kustomization.FixKustomization()
			rest = slices.DeleteFunc(kustomization.Resources,
				func(r string) bool { return k.refuseReference(dir, r) != "" })
		}
	}
	encoded, err := json.Marshal(map[string][]string{"resources": rest})
	if err != nil {
		panic(err) // lists of strings can always be marshaled
	}
	return encoded
}

// isOneDocument reports whether content is a single YAML document with aliases that expand within the limits.
func (k *kustomizeFS) isOneDocument(content []byte) bool {
	documents := 0
	for document, err := range k.files.documentsIn(content) {
		if err != nil || k.files.checkExpansion(document) != nil {
			return false
		}
		documents++
	}
	return documents == 1
}

func unsupportedFields(k kustomize.Kustomization) (fields []string) {
	given := map[string]bool{
		"crds":         len(k.Crds) > 0, // their references may form a cycle, which kustomize would follow forever
		"openapi":      len(k.OpenAPI) > 0,
		"helmCharts":   len(k.HelmCharts) > 0,
		"helmGlobals":  k.HelmGlobals != nil,
		"generators":   len(k.Generators) > 0,
		"transformers": len(k.Transformers) > 0,
		"validators":   len(k.Validators) > 0,
	}
	for field, is := range given {
		if is {
			fields = append(fields, field)
		}
	}
	return fields
}

// referencesOf returns the files and directories that a kustomization refers to, by field.
func referencesOf(k kustomize.Kustomization) map[string][]string {
	references := map[string][]string{
		"resources":      k.Resources,
		"components":     k.Components,
		"configurations": k.Configurations,
	}
	add := func(field, reference string) {
		if reference != "" {
			references[field] = append(references[field], reference)
		}
	}
	for _, p := range k.Patches {
		add("patches", p.Path)
	}
	for _, p := range k.PatchesJson6902 { //nolint:staticcheck // deprecated, and kustomize follows it
		add("patchesJson6902", p.Path)
	}
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // deprecated, and kustomize follows it
		// Kustomize treats a path that it cannot load as an inline patch.
		if !strings.Contains(string(p), "\n") || strings.HasPrefix(string(p), "http") {
			add("patchesStrategicMerge", string(p))
		}
	}
	for _, r := range k.Replacements {
		add("replacements", r.Path)
	}
	for _, g := range k.ConfigMapGenerator {
		addSources(add, "configMapGenerator", g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		addSources(add, "secretGenerator", g.KvPairSources)
	}
	return references
}

func addSources(add func(field, reference string), field string, sources kustomize.KvPairSources) {
	for _, source := range sources.FileSources {
		_, file, named := strings.Cut(source, "=")
		if !named {
			file = source
		}
		add(field, file)
	}
	for _, source := range sources.EnvSources {
		add(field, source)
	}
}

// refuseReference returns why a reference is not a file or directory in the source, or "". It refuses anything that
// kustomize might treat as a URL or repository, even if a file with that name exists.
func (k *kustomizeFS) refuseReference(dir, reference string) string {
	lower := strings.ToLower(reference)
	switch {
	case strings.ContainsAny(reference, ":@?\\") || strings.Contains(reference, "//") ||
		strings.HasPrefix(lower, "github.com"):
		return "is not in the source: remote resources are not fetched; copy it into the source"
	case path.IsAbs(reference):
		return "is an absolute path; write it relative to the kustomization"
	case !k.exists(path.Join(dir, reference)):
		return "is not in the source"
	}
	return ""
}

// lineOfText returns the first line that contains text, or 0.
func lineOfText(content []byte, text string) int {
	i := bytes.Index(content, []byte(text))
	if i < 0 {
		return 0
	}
	return lineAt(content, i)
}
