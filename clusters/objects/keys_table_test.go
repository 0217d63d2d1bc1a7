package objects

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/internal/etcdversion"
)

// releasesAround returns the first and last etcdversion.Version of every key, and the version just before each first
// version.
func releasesAround(table []etcdKey) []etcdversion.Version {
	releases := map[etcdversion.Version]bool{}
	for _, k := range table {
		for _, v := range []etcdversion.Version{k.first, k.last, {Major: 3, Minor: k.first.Minor, Patch: k.first.Patch - 1}} {
			if v.AtLeast(etcdversion.Must("3.5.3")) && v.Patch >= 0 {
				releases[v] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(releases), func(a, b etcdversion.Version) int {
		return a.Compare(b)
	})
}

func readKeys(t *testing.T) []etcdKey {
	text, err := os.ReadFile(etcdKeys)
	if err != nil {
		t.Fatal(err)
	}
	var table []etcdKey
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		if lines.Text() == "" || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var k etcdKey
		var first, last string
		if _, err := fmt.Sscan(lines.Text(), &k.structName, &k.key, &k.goType, &first, &last); err != nil {
			t.Fatalf("%s: %q: %v", etcdKeys, lines.Text(), err)
		}
		k.first, k.last = mustParse(t, first), mustParse(t, last)
		table = append(table, k)
	}
	return table
}

func mustParse(t *testing.T, text string) etcdversion.Version {
	v, err := declaredVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// etcdSources returns the path of embed/config.go for each etcd release in the module cache.
func etcdSources(t *testing.T) map[etcdversion.Version]string {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Skipf("ask go for its module cache: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(cache)), "go.etcd.io/etcd/server/v3@v*/embed/config.go"))
	if err != nil {
		t.Fatal(err)
	}
	sources := map[etcdversion.Version]string{}
	for _, file := range files {
		release := regexp.MustCompile(`@v(3\.[0-9]+\.[0-9]+)/`).FindStringSubmatch(file)
		if release == nil {
			continue
		}
		if v := mustParse(t, release[1]); v.AtLeast(etcdversion.Must("3.5.3")) {
			sources[v] = file
		}
	}
	return sources
}

var jsonTag = regexp.MustCompile(`json:"([^",]+)`)

// configKeys returns the keys of a release. Their first and last versions are that release.
func configKeys(t *testing.T, v etcdversion.Version, file string) []etcdKey {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var keys []etcdKey
	ast.Inspect(parsed, func(n ast.Node) bool {
		declared, isType := n.(*ast.TypeSpec)
		if !isType {
			return true
		}
		if fields, isStruct := declared.Type.(*ast.StructType); isStruct {
			for _, field := range fields.Fields.List {
				if field.Tag == nil {
					continue
				}
				if tag := jsonTag.FindStringSubmatch(field.Tag.Value); tag != nil && tag[1] != "-" {
					keys = append(keys, etcdKey{declared.Name.Name, tag[1], typeName(field.Type), v, v})
				}
			}
		}
		return false
	})
	return keys
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.ArrayType:
		return "[]" + typeName(e.Elt)
	}
	return "other"
}

func writeKeys(t *testing.T, sources map[etcdversion.Version]string) {
	byName := map[string]etcdKey{}
	releases := slices.SortedFunc(maps.Keys(sources), func(a, b etcdversion.Version) int {
		return a.Compare(b)
	})
	for _, v := range releases {
		for _, k := range configKeys(t, v, sources[v]) {
			name := k.structName + " " + k.key + " " + k.goType
			if before, found := byName[name]; found {
				k.first = before.first
			}
			byName[name] = k
		}
	}
	text := "# The keys of etcd's configuration file: struct in embed/config.go, key, type, first and last release with it\n" +
		"# (3.5.3 is the oldest looked at, " + releases[len(releases)-1].String() + " the newest). Written by go test ./clusters/objects -run TestEtcdKeys -rewrite.\n"
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		text += byName[name].String() + "\n"
	}
	if err := os.WriteFile(etcdKeys, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
