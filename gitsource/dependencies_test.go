package gitsource

import (
	"os"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// fixed lists the lowest versions without known advisories, for the dependencies that read git and YAML. The comments
// name the latest advisories that these versions fix.
var fixed = map[string]string{
	"github.com/go-git/go-git/v5":           "v5.19.2", // CVE-2026-71556, CVE-2026-71557; before: 2026-45022, 2026-45570, 2026-45571, 2026-41506, 2026-34165, 2026-33762, 2026-25934, 2025-21613, 2025-21614, 2023-49568, 2023-49569
	"github.com/go-git/go-billy/v5":         "v5.9.0",  // CVE-2026-44740, CVE-2026-44973
	"github.com/cyphar/filepath-securejoin": "v0.2.4",  // GHSA-6xv5-86q9-7xr8
	"golang.org/x/crypto":                   "v0.45.0", // CVE-2025-47914, CVE-2025-58181; before: 2025-22869, 2024-45337, 2023-48795
	"golang.org/x/net":                      "v0.38.0", // CVE-2025-22872
	"github.com/golang-jwt/jwt/v5":          "v5.2.2",  // CVE-2025-30204
	"go.yaml.in/yaml/v3":                    "v3.0.1",  // CVE-2022-28948
}

// TestDependenciesIncludeSecurityFixes checks that the linked dependencies are at versions that fix all known
// advisories. "make vuln" checks the vulnerability database for newer advisories.
func TestDependenciesIncludeSecurityFixes(t *testing.T) {
	content, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range file.Require {
		least, ok := fixed[r.Mod.Path]
		if seen[r.Mod.Path] = true; ok && semver.Compare(r.Mod.Version, least) < 0 {
			t.Errorf("%s is at %s, which has known vulnerabilities; %s is the first without", r.Mod.Path, r.Mod.Version, least)
		}
	}
	for path := range fixed {
		if !seen[path] {
			t.Errorf("%s is no longer required; remove it from the list", path)
		}
	}
	for _, r := range file.Replace {
		t.Errorf("%s is replaced by %s: the required version is not the linked one", r.Old.Path, r.New.Path)
	}
}
