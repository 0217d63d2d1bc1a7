package decide_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestEveryAction checks that each kind of action has its text, a story, a path of the simulated world, recovery
// documentation, and right and wrong examples.
func TestEveryAction(t *testing.T) {
	source := textOf(t, "action.go")
	stories, paths := textOf(t, "../../testdata/decide/*.txt"), textOf(t, "../../testdata/converge/*.txt")
	recovery := textOf(t, "../../docs/*recovery.md", "../../docs/*/recovery.md")
	var names []string
	for _, a := range decide.Actions() {
		name := reflect.TypeOf(a).Name()
		names = append(names, name)
		if !strings.HasPrefix(a.String(), name) {
			t.Errorf("%s prints as %q", name, a)
		}
		for what, found := range map[string]bool{
			"no story in testdata/decide contains it":            regexp.MustCompile(`(?m)^Act +\w+  ` + name + `\b`).MatchString(stories),
			"no path in testdata/converge takes it":              regexp.MustCompile(`(?m) ` + name + `\b.*; \d+ written`).MatchString(paths),
			"docs/explanation/recovery.md has no heading for it": regexp.MustCompile(`(?m)^##.*\b` + name + `\b`).MatchString(recovery),
			"no wrong example of it violates an invariant":       slices.ContainsFunc(everyWrong(), isA(a)),
		} {
			if !found {
				t.Errorf("%s: %s", name, what)
			}
		}
	}
	for _, declared := range regexp.MustCompile(`(?m)^func \((?:a )?(\w+)\) action\(\)`).FindAllStringSubmatch(source, -1) {
		if !slices.Contains(names, declared[1]) {
			t.Errorf("%s is not one of decide.Actions", declared[1])
		}
	}
}

func isA(a decide.Action) func(wrong) bool {
	return func(w wrong) bool { return reflect.TypeOf(w.action) == reflect.TypeOf(a) }
}

// textOf returns the joined contents of the matching files.
func textOf(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	if all.Len() == 0 {
		t.Fatalf("no text in files matching %q", patterns)
	}
	return all.String()
}
