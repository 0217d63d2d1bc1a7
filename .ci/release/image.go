package main

import (
	"archive/tar"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"quorate.dev/quorate/sandbox/image"
)

// image writes an image for all Linux architectures as an OCI layout archive, and its SBOM. It returns the digest by
// which registries identify the image.
func (r *release) image() (string, error) {
	programs := map[string]string{}
	var infos []*debug.BuildInfo
	for _, p := range platforms() {
		if p.os != "linux" {
			continue
		}
		programs[p.arch] = filepath.Join(r.out, r.name(p.suffix()))
		info, err := buildinfo.ReadFile(programs[p.arch])
		if err != nil {
			return "", fmt.Errorf("read the build information of the image's program: %w", err)
		}
		infos = append(infos, info)
	}
	index, err := r.index(programs)
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err == nil {
		err = r.archive(index)
	}
	if err == nil {
		err = r.writeImageSBOM(index, infos)
	}
	if err != nil {
		return "", fmt.Errorf("write the image: %w", err)
	}
	return digest.String(), nil
}

// index returns an image with one program per architecture. The target "make image" does the same for a single
// architecture.
func (r *release) index(programs map[string]string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms() {
		program, is := programs[p.arch]
		if p.os != "linux" || !is {
			continue
		}
		one, err := image.Image{
			Reference: r.repository + ":" + r.version, Programs: map[string]string{"/usr/local/bin/quorate": program},
			Entrypoint: []string{"/usr/local/bin/quorate"}, User: "65532:65532",
		}.Make(p.arch, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
		if err == nil {
			one, err = mutate.CreatedAt(one, v1.Time{Time: r.time})
		}
		if err != nil {
			return nil, fmt.Errorf("build the image for %s: %w", p.arch, err)
		}
		one = mutate.ConfigMediaType(mutate.MediaType(one, types.OCIManifestSchema1), types.OCIConfigJSON)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	return mutate.Annotations(index, map[string]string{
		"org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
	}).(v1.ImageIndex), nil
}

// archive writes the OCI layout of the image as a tar file for skopeo, ctr, docker and kind.
func (r *release) archive(index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp(r.out, "layout-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	whole, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := whole.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": r.repository + ":" + r.version,
	})); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(r.out, r.name("image.tar")))
	if err != nil {
		return err
	}
	return errors.Join(r.tar(file, os.DirFS(dir)), file.Close())
}

// tar writes the files sorted by name, with the commit time.
func (r *release) tar(to io.Writer, files fs.FS) error {
	archive := tar.NewWriter(to)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: r.time}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		file, err := files.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(archive, file)
		return err
	})
	return errors.Join(err, archive.Close())
}
