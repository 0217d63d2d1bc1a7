//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"quorate.dev/quorate/sandbox/image"
	"quorate.dev/quorate/sandbox/layout"
)

// ProgramImage returns an image with one static program as its entrypoint. The image runs as user 65532, like most
// distroless images.
func ProgramImage(reference, program string) (image.Image, error) {
	name, err := image.Repository(reference)
	if err != nil {
		return image.Image{}, err
	}
	if info, err := os.Stat(program); err != nil {
		return image.Image{}, fmt.Errorf("build image %s: %w", reference, err)
	} else if !info.Mode().IsRegular() {
		return image.Image{}, fmt.Errorf("build image %s: %s is not a program", reference, program)
	}
	inside := "/usr/local/bin/" + path.Base(name)
	return image.Image{
		Reference:  reference,
		Programs:   map[string]string{inside: program},
		Entrypoint: []string{inside},
		User:       "65532:65532",
	}, nil
}

// Load builds an image of one static program and imports it on every node. A stopped node imports the image when it
// starts.
func (s *Sandbox) Load(ctx context.Context, reference, program string) error {
	made, err := ProgramImage(reference, program)
	if err != nil {
		return err
	}
	if _, err := s.controlPlane(); err != nil {
		return err
	}
	programs, err := Build(ctx, s.Progress)
	if err != nil {
		return err
	}
	unlock, err := s.lockExisting(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	archive, err := s.keepImage(made)
	if err != nil {
		return err
	}
	r, err := s.recorded()
	if err != nil {
		return err
	}
	for _, n := range r.nodes() {
		if err := s.importInto(ctx, programs, n, archive); err != nil {
			return err
		}
	}
	return nil
}

// keepImage writes the archive of the image and removes earlier archives of the same image. The file name is different
// each time, so that nodes import the image again.
func (s *Sandbox) keepImage(made image.Image) (string, error) {
	stem := strings.NewReplacer("/", "_", ":", "_").Replace(made.Reference)
	former, err := filepath.Glob(filepath.Join(s.loadedImages(), stem+"@*.tar"))
	if err != nil {
		return "", fmt.Errorf("list loaded images: %w", err)
	}
	archive := filepath.Join(s.loadedImages(), fmt.Sprintf("%s@%d.tar", stem, time.Now().UnixNano()))
	if err := made.Write(archive); err != nil {
		return "", err
	}
	var problems []error
	for _, old := range former {
		problems = append(problems, os.Remove(old))
	}
	return archive, errors.Join(problems...)
}

func (s *Sandbox) importInto(ctx context.Context, programs Programs, n layout.Node, archive string) error {
	m, err := s.machine(n.Name())
	if err != nil || m == nil {
		return err
	}
	defer m.Release()
	importer := image.Importer{
		Ctr:    filepath.Join(programs.dir("containerd"), "ctr"),
		Socket: m.Path(layout.ContainerdSocket),
		Marks:  m.Path(layout.ImportedImages),
	}
	if err := importer.Import(ctx, archive); err != nil {
		return fmt.Errorf("load into %s: %w", n.Name(), err)
	}
	return nil
}
