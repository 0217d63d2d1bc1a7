//go:build linux

package sandbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"quorate.dev/quorate/sandbox/image"
	"quorate.dev/quorate/sandbox/layout"
)

// nonroot is the user of loaded images, by the custom of distroless ones.
const nonroot = "65532:65532"

// Load makes an image of one static program and gives it to every node. A node
// that is stopped gets it when it starts.
func (s *Sandbox) Load(ctx context.Context, reference, program string) error {
	if err := image.Check(reference); err != nil {
		return err
	}
	if _, err := s.controlPlane(); err != nil {
		return err
	}
	programs, err := Build(ctx, s.Progress)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	archive, err := s.writeLoaded(reference, program)
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

// writeLoaded writes the image's archive, in place of one of the same name.
func (s *Sandbox) writeLoaded(reference, program string) (string, error) {
	key, err := digest(program)
	if err != nil {
		return "", err
	}
	inside := "/usr/local/bin/" + filepath.Base(strings.Split(reference, ":")[0])
	stem := strings.NewReplacer("/", "_", ":", "_").Replace(reference)
	former, err := filepath.Glob(filepath.Join(s.loadedImages(), stem+"@*.tar"))
	if err != nil {
		return "", fmt.Errorf("list loaded images: %w", err)
	}
	archive := filepath.Join(s.loadedImages(), fmt.Sprintf("%s@%s-%d.tar", stem, key, time.Now().UnixNano()))
	made := image.Image{
		Reference:  reference,
		Programs:   map[string]string{inside: program},
		Entrypoint: []string{inside},
		User:       nonroot,
	}
	if err := made.Write(archive); err != nil {
		return "", err
	}
	for _, old := range former {
		if err := os.Remove(old); err != nil {
			return "", fmt.Errorf("remove the former image: %w", err)
		}
	}
	return archive, nil
}

func digest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open the program: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read the program: %w", err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))[:12], nil
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
