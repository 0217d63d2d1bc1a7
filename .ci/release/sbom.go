package main

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const unsaid = "NOASSERTION"

// writeSBOM writes the SBOM of a file in the release as SPDX 2.3, based on the build information of its programs.
func (r *release) writeSBOM(name, purpose, sum string, programs ...*debug.BuildInfo) error {
	document := r.sbom(name, purpose, sum, programs)
	document.Packages[0].PackageFileName = name
	return r.writeDocument(document)
}

func (r *release) writeDocument(document *v2_3.Document) error {
	var text bytes.Buffer
	if err := json.Write(document, &text, json.Indent("  ")); err != nil {
		return fmt.Errorf("write the SBOM of %s: %w", document.DocumentName, err)
	}
	return r.write(document.DocumentName+".spdx.json", text.Bytes())
}

func (r *release) sbom(name, purpose, sum string, programs []*debug.BuildInfo) *v2_3.Document {
	whole := &v2_3.Package{
		PackageName: "quorate", PackageSPDXIdentifier: "quorate", PackageVersion: r.version,
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: sum}},
		PackageDownloadLocation: unsaid, PackageLicenseDeclared: "Apache-2.0", PackageLicenseConcluded: unsaid,
		PackageCopyrightText: unsaid, PackageSourceInfo: "git commit " + r.commit, PrimaryPackagePurpose: purpose,
	}
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "https://quorate.dev/spdx/" + name + "-" + sum,
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "quorate-release-" + r.version}},
			Created:  r.time.Format(time.RFC3339),
		},
		Packages:      []*v2_3.Package{whole},
		Relationships: []*v2_3.Relationship{relation("DOCUMENT", common.TypeRelationshipDescribe, "quorate")},
	}
	for i, m := range modules(programs) {
		p := m.spdx(i)
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships,
			relation("quorate", common.TypeRelationshipDependsOn, p.PackageSPDXIdentifier))
	}
	return document
}

func relation(a common.ElementID, kind string, b common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{
		RefA: common.MakeDocElementID("", string(a)), Relationship: kind, RefB: common.MakeDocElementID("", string(b)),
	}
}

// module is a linked module, or its replacement.
type module struct{ path, version string }

// modules returns the modules of the programs, sorted and without duplicates. Go's standard library is included, under
// the name that scanners use.
func modules(programs []*debug.BuildInfo) []module {
	var all []module
	for _, program := range programs {
		all = append(all, module{"stdlib", strings.TrimPrefix(program.GoVersion, "go")})
		for _, m := range program.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			all = append(all, module{m.Path, m.Version})
		}
	}
	slices.SortFunc(all, func(a, b module) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version))
	})
	return slices.Compact(all)
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func (m module) spdx(number int) *v2_3.Package {
	id := fmt.Sprintf("module-%d-%s", number, notInID.ReplaceAllString(m.path, "-"))
	return &v2_3.Package{
		PackageName: m.path, PackageSPDXIdentifier: common.ElementID(id), PackageVersion: m.version,
		PackageDownloadLocation: unsaid, PackageLicenseDeclared: unsaid, PackageLicenseConcluded: unsaid,
		PackageCopyrightText: unsaid, PrimaryPackagePurpose: "LIBRARY",
		PackageExternalReferences: []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + m.path + "@" + strings.ReplaceAll(m.version, "+", "%2B"),
		}},
	}
}
