// Package image builds container images that consist of static programs and writes them as archives that a container
// runtime can import. It does not require a registry or other tools.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Format is the version of the archive format. It must change whenever the archive for unchanged programs would change.
const Format = "2"

// Image is a single-layer image of static programs.
type Image struct {
	Reference  string            // name and tag
	Programs   map[string]string // path in the image → path of the program on the host
	Entrypoint []string
	User       string // "uid:gid"; "" for root
}

// Repository returns the repository of a full reference, without its tag, or an error if the reference is
// invalid. It does not contact a registry.
func Repository(reference string) (string, error) {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("expected an image name with a registry and a tag, such as quorate.dev/quorate:dev; for "+
			"an image that pods name without a registry, docker.io/library/NAME:TAG: %w", err)
	}
	return tag.Repository.Name(), nil
}

// Write atomically writes the image's archive to file. The same programs produce the same archive.
func (i Image) Write(file string) error {
	tag, err := name.NewTag(i.Reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("parse the name of image %s: %w", i.Reference, err)
	}
	// The archive stays on this machine, so compression is not worth the time.
	image, err := i.Make(runtime.GOARCH, tarball.WithCompressionLevel(gzip.NoCompression))
	if err != nil {
		return err
	}
	unfinished := file + ".unfinished"
	defer func() { _ = os.Remove(unfinished) }() // the file has been renamed or is incomplete
	if err := tarball.WriteToFile(unfinished, tag, image); err != nil {
		return fmt.Errorf("write image %s: %w", i.Reference, err)
	}
	if err := os.Rename(unfinished, file); err != nil {
		return fmt.Errorf("write image %s: %w", i.Reference, err)
	}
	return nil
}

// Make builds the image for an architecture. The programs must have been built for that architecture. The same programs
// and options produce the same image.
func (i Image) Make(architecture string, layer ...tarball.LayerOption) (v1.Image, error) {
	programs, err := tarball.LayerFromOpener(i.layer, layer...)
	if err != nil {
		return nil, fmt.Errorf("build the layer of image %s: %w", i.Reference, err)
	}
	image, err := mutate.AppendLayers(empty.Image, programs)
	if err == nil {
		image, err = mutate.ConfigFile(image, i.config(image, architecture))
	}
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", i.Reference, err)
	}
	return image, nil
}

func (i Image) config(of v1.Image, architecture string) *v1.ConfigFile {
	config := &v1.ConfigFile{OS: "linux", Architecture: architecture}
	if existing, err := of.ConfigFile(); err == nil {
		config.RootFS = existing.RootFS
	}
	config.Config = v1.Config{
		Entrypoint: i.Entrypoint,
		User:       i.User,
		WorkingDir: "/",
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	return config
}

// layer returns a stream of the layer as a tar archive. It contains the programs, their parent directories, a
// world-writable /tmp, and the users root and nonroot.
func (i Image) layer() (io.ReadCloser, error) {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(i.writeLayer(tar.NewWriter(writer))) }()
	return reader, nil
}

func (i Image) writeLayer(archive *tar.Writer) error {
	headers := []tar.Header{{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}}
	for _, dir := range i.directories() {
		headers = append(headers, tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755})
	}
	for _, header := range headers {
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
	}
	for _, file := range []struct{ name, content string }{
		{"etc/passwd", "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"},
		{"etc/group", "root:x:0:\nnonroot:x:65532:\n"},
		{"etc/nsswitch.conf", "hosts: files dns\n"},
	} {
		if err := writeFile(archive, file.name, 0o644, int64(len(file.content)),
			bytes.NewReader([]byte(file.content))); err != nil {
			return err
		}
	}
	for _, inside := range i.paths() {
		if err := copyProgram(archive, inside, i.Programs[inside]); err != nil {
			return err
		}
	}
	return archive.Close()
}

func (i Image) paths() []string {
	var paths []string
	for inside := range i.Programs {
		paths = append(paths, inside)
	}
	slices.Sort(paths)
	return paths
}

func (i Image) directories() []string {
	dirs := []string{"etc"}
	for inside := range i.Programs {
		for dir := path.Dir(strings.TrimPrefix(inside, "/")); dir != "."; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func copyProgram(archive *tar.Writer, inside, outside string) error {
	program, err := os.Open(filepath.Clean(outside))
	if err != nil {
		return err
	}
	defer program.Close()
	info, err := program.Stat()
	if err != nil {
		return err
	}
	return writeFile(archive, strings.TrimPrefix(inside, "/"), 0o755, info.Size(), program)
}

func writeFile(archive *tar.Writer, name string, mode, size int64, content io.Reader) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}
