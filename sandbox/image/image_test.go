package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func sample(t *testing.T) Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), "hello")
	if err := os.WriteFile(program, []byte("not really a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	return Image{
		Reference:  "example.test/hello:v1",
		Programs:   map[string]string{"/usr/local/bin/hello": program},
		Entrypoint: []string{"/usr/local/bin/hello"},
		User:       "65532:65532",
	}
}

func TestWriteGivesAnImageThatOthersCanRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hello.tar")
	if err := sample(t).Write(file); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/hello"}) {
		t.Errorf("configuration is %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (%v), want 1", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.Mode
	}
	for name, want := range map[string]int64{
		"usr/": 0o755, "usr/local/": 0o755, "usr/local/bin/": 0o755, "usr/local/bin/hello": 0o755, "tmp/": 0o1777, "etc/passwd": 0o644,
	} {
		if got, ok := modes[name]; !ok || got != want {
			t.Errorf("%s has mode %o (there: %t), want %o", name, got, ok, want)
		}
	}
}

func TestWriteIsReproducible(t *testing.T) {
	image, dir := sample(t), t.TempDir()
	var archives [2][]byte
	for i, name := range []string{"a.tar", "b.tar"} {
		file := filepath.Join(dir, name)
		if err := image.Write(file); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = content
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of one image differ")
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	image, dir := sample(t), t.TempDir()
	image.Programs = map[string]string{"/hello": filepath.Join(dir, "missing")}
	if err := image.Write(filepath.Join(dir, "hello.tar")); err == nil {
		t.Error("an image of a missing program was written")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

func TestRepository(t *testing.T) {
	for reference, want := range map[string]string{
		"quorate.dev/quorate:dev": "quorate.dev/quorate", "localhost:5000/a/b:v1": "localhost:5000/a/b",
		"quorate.dev/quorate": "", "quorate:dev": "", "Quorate.dev/Q:dev": "", "": "",
	} {
		got, err := Repository(reference)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Repository(%q) = %q, %v; want %q", reference, got, err, want)
		}
	}
}

// TestImportEachArchiveOnce checks that each archive is imported once, with a fake ctr that records imports.
func TestImportEachArchiveOnce(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	ctr := filepath.Join(dir, "ctr")
	if err := os.WriteFile(ctr, []byte("#!/bin/sh\necho \"$@\" >> "+asked+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	loaded := filepath.Join(dir, "loaded")
	if err := os.Mkdir(loaded, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"a.tar", "loaded/b.tar", "loaded/c.tar.unfinished"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	importer := Importer{Ctr: ctr, Socket: "/s.sock", Marks: filepath.Join(dir, "marks")}
	for range 2 {
		if err := importer.Import(t.Context(), loaded, filepath.Join(dir, "a.tar")); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(asked)
	if err != nil {
		t.Fatal(err)
	}
	prefix := "--address /s.sock --namespace k8s.io images import " + dir
	if want := prefix + "/loaded/b.tar\n" + prefix + "/a.tar\n"; string(got) != want {
		t.Errorf("asked for:\n%swant:\n%s", got, want)
	}
}
