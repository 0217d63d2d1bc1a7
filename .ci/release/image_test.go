package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
)

// TestImage checks that the image has a program for each Linux architecture and is reproducible.
func TestImage(t *testing.T) {
	var digests, sums []string
	for range 2 {
		r := newRelease(t)
		programs := map[string]string{}
		for _, arch := range []string{"amd64", "arm64"} {
			programs[arch] = filepath.Join(t.TempDir(), arch)
			if err := os.WriteFile(programs[arch], []byte("program for "+arch), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		index, err := r.index(programs)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err == nil {
			err = r.archive(index)
		}
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(r.out, "quorate-v1.2.3-image.tar")
		sum, err := sumOf(file)
		if err != nil {
			t.Fatal(err)
		}
		digests, sums = append(digests, digest.String()), append(sums, sum)
		requireImage(t, file, digest)
		if left, err := os.ReadDir(r.out); err != nil || len(left) != 1 {
			t.Errorf("%v is left: %v", left, err)
		}
	}
	if digests[0] != digests[1] || sums[0] != sums[1] {
		t.Errorf("they differ: %q, %q", digests, sums)
	}
}

// TestImageSBOM checks that the SBOM lists exactly the files in each architecture's image, with their checksums.
func TestImageSBOM(t *testing.T) {
	r := newRelease(t)
	programs := map[string]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		programs[arch] = filepath.Join(t.TempDir(), arch)
		if err := os.WriteFile(programs[arch], []byte("program for "+arch), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	index, err := r.index(programs)
	if err == nil {
		err = r.writeImageSBOM(index, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Read(strings.NewReader(readFile(t, filepath.Join(r.out, "quorate-v1.2.3-image.spdx.json"))))
	if err == nil {
		err = spdxlib.ValidateDocument(document)
	}
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range document.Packages {
		if p.PackageFileName != "" {
			t.Errorf("%s names the file %s", p.PackageName, p.PackageFileName)
		}
		if digest, err := index.Digest(); p.PackageName == "quorate" && (err != nil ||
			p.PackageExternalReferences[0].Locator != "pkg:oci/quorate@sha256%3A"+digest.Hex+"?repository_url=registry.example.com%2Fquorate") {
			t.Errorf("it is about %s: %v", p.PackageExternalReferences[0].Locator, err)
		}
		for _, m := range manifest.Manifests {
			if p.PackageChecksums[0].Value == m.Digest.Hex {
				one, err := index.Image(m.Digest)
				if err != nil {
					t.Fatal(err)
				}
				requireFiles(t, one, filesOf(document, p))
				delete(programs, m.Platform.Architecture)
			}
		}
	}
	if len(programs) > 0 {
		t.Errorf("nothing is said of the files for %v", programs)
	}
}

// filesOf returns the files that a package contains.
func filesOf(document *v2_3.Document, p *v2_3.Package) (files []*v2_3.File) {
	for _, r := range document.Relationships {
		for _, file := range document.Files {
			if r.Relationship == "CONTAINS" && r.RefA.ElementRefID == p.PackageSPDXIdentifier && r.RefB.ElementRefID == file.FileSPDXIdentifier {
				files = append(files, file)
			}
		}
	}
	return files
}

// requireFiles requires that files contains exactly the files in an image, including the program, with their checksums.
func requireFiles(t *testing.T, image v1.Image, files []*v2_3.File) {
	t.Helper()
	var names []string
	for _, file := range files {
		names = append(names, file.FileName)
		sum := sha256.Sum256([]byte(inImage(t, image, strings.TrimPrefix(file.FileName, "."))))
		if file.Checksums[1].Value != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not what is in the image", file.FileName)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"./etc/group", "./etc/nsswitch.conf", "./etc/passwd", "./usr/local/bin/quorate"}) {
		t.Errorf("it has %q", names)
	}
}

func requireImage(t *testing.T, file string, digest v1.Hash) {
	t.Helper()
	dir := t.TempDir()
	command(t, dir, "tar", "-xf", file)
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := outer.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		one, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := one.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != m.Platform.Architecture || config.OS != "linux" || config.Config.User != "65532:65532" || config.Created.Unix() != 1700000000 {
			t.Errorf("for %s, it is %+v", m.Platform, config)
		}
		if want := "program for " + m.Platform.Architecture; inImage(t, one, config.Config.Entrypoint[0]) != want {
			t.Errorf("for %s, the program is not %q", m.Platform, want)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("it is for %q", platforms)
	}
}

func inImage(t *testing.T, image v1.Image, name string) string {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers: %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if "/"+header.Name == name {
			text, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
}
