// Package config reads the configuration file of a run. Like the flags, the file is provided by the administrator who
// starts the run, never by a repository. The package determines which settings a file contains; the flags of the
// command parse their values, so that a setting accepts the same values as its flag.
package config

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// APIVersion is the apiVersion of a configuration file.
	APIVersion = "config.quorate.dev/v1alpha1"
	// Kind is the kind of a configuration file.
	Kind = "Configuration"
	// MostBytes is the maximum size of a file.
	MostBytes = 1 << 20
)

// Configuration is the content of a file.
type Configuration struct {
	// Values contains the settings of the run, and Defaults the settings of every source.
	Values, Defaults []Value
	Sources          []Source
}

// Source is an entry of sources.
type Source struct {
	// Name is the name of the entry, such as sources[0].
	Name     string
	Line     int
	Location Value
	Values   []Value
}

// Value is the value of a setting.
type Value struct {
	// Name is the full name of the setting, such as sourceDefaults.path, and Flag is the flag that parses the value.
	Name, Flag string
	Line       int
	// List reports whether the value is a list, which may be empty. Otherwise, it has one item.
	List  bool
	Items []Item
}

// Item is a scalar value.
type Item struct {
	// Text is the value, in which variables are expanded. Written is the text in the file. They differ if the value
	// comes from the environment and may thus be a secret.
	Text, Written string
	Line          int
}

// Problem is an error in the file.
type Problem struct {
	Line    int
	Message string
}

// Parse parses a file. It returns either its content or all its problems. lookup returns the value of an environment
// variable, and whether it is set. has reports whether the command has a flag; variables in other settings, which it
// ignores, are not expanded.
func Parse(
	text []byte, lookup func(name string) (string, bool), has func(flag string) bool,
) (Configuration, []Problem) {
	p := parser{lookup: lookup, has: has}
	c := p.file(text)
	if len(p.problems) > 0 {
		Sort(p.problems)
		return Configuration{}, p.problems
	}
	return c, nil
}

// Sort sorts problems by line.
func Sort(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
}

// parser collects problems.
type parser struct {
	lookup   func(string) (string, bool)
	has      func(string) bool
	problems []Problem
}

func (p *parser) problem(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{line, fmt.Sprintf(format, args...)})
}

func (p *parser) file(text []byte) (c Configuration) {
	top := p.document(text)
	if top == nil {
		return c
	}
	var header []Value
	for _, field := range p.fields(top, "", append(namesOf(Settings), "apiVersion", "kind", sources, defaults)) {
		switch field.name {
		case "apiVersion", "kind":
			header = append(header, p.scalar(field.value, Value{Name: field.name}))
		case sources:
			c.Sources = p.sources(field.value)
		case defaults:
			c.Defaults = p.values(field.value, defaults+".", SourceSettings)
		default:
			c.Values = append(c.Values, p.group(field, "", Settings)...)
		}
	}
	p.header(top, header)
	return c
}

// header requires the API version and the kind.
func (p *parser) header(top *yaml.Node, found []Value) {
	for _, want := range [][2]string{{"apiVersion", APIVersion}, {"kind", Kind}} {
		i := slices.IndexFunc(found, func(v Value) bool { return v.Name == want[0] })
		switch {
		case i < 0:
			p.problem(top.Line, "%s: %s is required", want[0], want[1])
		case found[i].Items[0].Written != want[1]:
			p.problem(found[i].Line, "%s: expected %s, found %q", want[0], want[1], found[i].Items[0].Written)
		}
	}
}

// document returns the mapping that the file contains, or nil.
func (p *parser) document(text []byte) *yaml.Node {
	if len(text) > MostBytes {
		p.problem(1, "the file is larger than %d bytes", MostBytes)
		return nil
	}
	var document, more yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		p.problem(1, "the file is empty: expected apiVersion: %s and kind: %s", APIVersion, Kind)
		return nil
	case err != nil:
		p.problem(lineOf(err), "%s", syntax(err))
		return nil
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		p.problem(more.Line, "expected one document")
		return nil
	case !errors.Is(err, io.EOF):
		p.problem(lineOf(err), "%s", syntax(err))
		return nil
	}
	return document.Content[0]
}

// sources parses the list of sources.
func (p *parser) sources(node *yaml.Node) (list []Source) {
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		p.problem(node.Line, "%s: expected a list of sources: - %s: URL or directory", sources, location)
		return nil
	}
	settings := slices.Concat([]Setting{{location, "source"}}, SourceSettings, TenantSettings)
	for i, entry := range node.Content {
		s := Source{Name: fmt.Sprintf("%s[%d]", sources, i), Line: entry.Line}
		values := p.values(entry, s.Name+".", settings)
		at := slices.IndexFunc(values, func(v Value) bool { return v.Flag == "source" })
		if at < 0 {
			if entry.Tag == "!!null" || entry.Kind == yaml.MappingNode && !p.sets(entry, location) {
				p.problem(entry.Line, "%s.%s is required", s.Name, location)
			}
			continue
		}
		s.Location = values[at]
		s.Values = slices.Delete(values, at, at+1)
		if s.Location.List {
			p.problem(s.Location.Line, "%s: expected one value", s.Location.Name)
		}
		list = append(list, s)
	}
	return list
}

// sets reports whether a mapping contains a key, even with an invalid value.
func (p *parser) sets(node *yaml.Node, key string) bool {
	return slices.ContainsFunc(node.Content, func(n *yaml.Node) bool { return n.Value == key })
}

// field is a key of a mapping, and its value.
type field struct {
	name  string
	value *yaml.Node
}

// fields returns the fields of a mapping. prefix is the full name of the mapping and a dot. Fields that no setting in
// names is, or belongs to, are problems.
func (p *parser) fields(node *yaml.Node, prefix string, names []string) (found []field) {
	at := strings.TrimSuffix(prefix, ".")
	if at == "" {
		at = "the file"
	}
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null" && prefix != "":
		return nil // every setting of the group is omitted
	case node.Kind != yaml.MappingNode:
		p.problem(node.Line, "%s: expected settings: %s", at, known(names))
		return nil
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		line, twice := lines[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode ||
			!slices.ContainsFunc(names, func(name string) bool { return first(name) == key.Value }):
			expected := "expected one of " + known(names)
			if others := elsewhere(key.Value); others != "" {
				expected = "did you mean " + others + "?"
			}
			p.problem(key.Line, "%s: unknown setting %q; %s", at, key.Value, expected)
		case twice:
			p.problem(key.Line, "%s%s is already set on line %d", prefix, key.Value, line)
		default:
			lines[key.Value] = key.Line
			found = append(found, field{key.Value, value})
		}
	}
	return found
}

// first returns the first part of a setting's name.
func first(name string) string {
	group, _, _ := strings.Cut(name, ".")
	return group
}

// elsewhere lists the settings, and groups of settings, with a name at a different level. It returns "" if there are
// none.
func elsewhere(name string) string {
	var names []string
	add := func(full string) {
		if !slices.Contains(names, full) {
			names = append(names, full)
		}
	}
	for prefix, settings := range map[string][]Setting{"": Settings, defaults + ".": SourceSettings} {
		for _, s := range settings {
			switch {
			case s.Name == name || strings.HasSuffix(s.Name, "."+name):
				add(prefix + s.Name)
			case strings.HasPrefix(s.Name, name+"."):
				add(prefix + name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// known lists the first parts of names.
func known(names []string) string {
	var parts []string
	for _, name := range names {
		if part := first(name); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// values parses a mapping of settings.
func (p *parser) values(node *yaml.Node, prefix string, settings []Setting) (values []Value) {
	for _, f := range p.fields(node, prefix, namesOf(settings)) {
		values = append(values, p.group(f, prefix, settings)...)
	}
	return values
}

// group parses a field, which is a setting or a group of settings.
func (p *parser) group(f field, prefix string, settings []Setting) []Value {
	var members []Setting
	for _, s := range settings {
		if s.Name == f.name {
			return []Value{p.value(f.value, Value{Name: prefix + f.name, Flag: s.Flag})}
		}
		if rest, is := strings.CutPrefix(s.Name, f.name+"."); is {
			members = append(members, Setting{rest, s.Flag})
		}
	}
	return p.values(f.value, prefix+f.name+".", members)
}

// value parses a scalar or a list of scalars. v has the name and the flag.
func (p *parser) value(node *yaml.Node, v Value) Value {
	if node.Kind != yaml.SequenceNode {
		return p.scalar(node, v)
	}
	v.Line, v.List = node.Line, true
	for i, item := range node.Content {
		v.Items = append(v.Items, p.scalar(item, Value{Name: fmt.Sprintf("%s[%d]", v.Name, i), Flag: v.Flag}).Items...)
	}
	return v
}

// scalar parses a scalar. It uses the text in the file, so that versions and dates are unchanged.
func (p *parser) scalar(node *yaml.Node, v Value) Value {
	v.Line = node.Line
	item := Item{Text: node.Value, Written: node.Value, Line: node.Line}
	switch {
	case node.Kind == yaml.AliasNode:
		p.problem(node.Line, "%s: aliases are not supported; repeat the value", v.Name)
	case node.Kind != yaml.ScalarNode:
		p.problem(node.Line, "%s: expected a value", v.Name)
	case node.Tag == "!!null":
		p.problem(node.Line, "%s: the value is missing; omit the setting", v.Name)
	case strings.TrimSpace(node.Value) == "":
		p.problem(node.Line, "%s: the value is empty; omit the setting", v.Name)
	case p.has(v.Flag):
		item.Text = p.expand(node, v.Name)
	}
	v.Items = []Item{item}
	return v
}

const reference = `\$\([A-Za-z_][A-Za-z0-9_]*\)`

// variable matches $(NAME), and $$(NAME), which stands for the text $(NAME).
var variable, unescaped = regexp.MustCompile(`\$?` + reference), regexp.MustCompile(reference)

// Literal returns a value for the file that stands for the given text, in which nothing is expanded.
func Literal(text string) string { return unescaped.ReplaceAllString(text, `$$$0`) }

// expand replaces variables with their values in the environment.
func (p *parser) expand(node *yaml.Node, setting string) string {
	return variable.ReplaceAllStringFunc(node.Value, func(found string) string {
		if literal, is := strings.CutPrefix(found, "$$"); is {
			return "$" + literal
		}
		name := found[len("$(") : len(found)-1]
		value, set := p.lookup(name)
		switch {
		case !set:
			p.problem(node.Line, "%s: the environment variable %s is not set", setting, name)
		case strings.TrimSpace(value) == "":
			p.problem(node.Line, "%s: the environment variable %s is empty", setting, name)
		}
		return value
	})
}

var line = regexp.MustCompile(`^yaml: line ([0-9]+): `)

// lineOf returns the line number in a YAML error, or 1.
func lineOf(err error) int {
	n := 1
	if found := line.FindStringSubmatch(err.Error()); found != nil {
		_, _ = fmt.Sscan(found[1], &n) // digits
	}
	return n
}

// syntax returns a YAML error without its line.
func syntax(err error) string {
	text := err.Error()
	if found := line.FindString(text); found != "" {
		return text[len(found):]
	}
	return strings.TrimPrefix(text, "yaml: ")
}
