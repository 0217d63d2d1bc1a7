package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// String returns the whole spec as text, for users and golden files, with placeholders for secrets.
func (s Spec) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "machine %s in %s, cgroup %s\n", s.Name, s.Dir, s.Cgroup)
	if s.Network != nil {
		fmt.Fprintf(&text, "network %+v\n", *s.Network)
	}
	for _, m := range s.Mounts {
		fmt.Fprintf(&text, "mount %s at %s\n", m.Source, m.Target)
	}
	for _, path := range slices.Sorted(maps.Keys(s.Masks)) {
		fmt.Fprintf(&text, "mask %s with %q\n", path, s.Masks[path])
	}
	for _, p := range s.Processes {
		fmt.Fprintf(&text, "\nprocess %s%s\n  %s\n", p.Name, after(p),
			strings.Join(append([]string{p.Path}, p.Args...), "\n    "))
	}
	for _, path := range slices.Sorted(maps.Keys(s.Files)) {
		fmt.Fprintf(&text, "\nfile %s\n%s", path, indent(withoutSecrets(s.Files[path])))
	}
	return text.String()
}

func after(p Process) string {
	words := ""
	if p.Once {
		words = ", once"
	}
	if len(p.After) > 0 {
		words += ", after " + strings.Join(p.After, " and ")
	}
	return words
}

// withoutSecrets removes certificates and keys that are in PEM or base64-encoded PEM.
func withoutSecrets(content string) string {
	if strings.HasPrefix(content, "-----BEGIN") {
		return "(PEM)\n"
	}
	var lines []string
	for line := range strings.Lines(content) {
		if key, _, found := strings.Cut(line, "-data: "); found {
			line = key + "-data: (base64)\n"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
