package main

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// The image has a program for each architecture of Linux, and is the same if it is made again.
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
