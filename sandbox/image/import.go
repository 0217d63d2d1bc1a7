package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Importer imports archives into containerd, each archive only once.
type Importer struct {
	Ctr    string // path of containerd's command-line client
	Socket string // containerd's socket
	Marks  string // directory with a mark for each imported archive
}

// Import imports the archives that have not been imported yet. Each path is an archive or a directory of archives.
func (i Importer) Import(ctx context.Context, paths ...string) error {
	if err := os.MkdirAll(i.Marks, 0o755); err != nil {
		return fmt.Errorf("create the directory of imported images: %w", err)
	}
	archives, err := expand(paths)
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if err := i.importOne(ctx, archive); err != nil {
			return err
		}
	}
	return nil
}

func expand(paths []string) ([]string, error) {
	var archives []string
	for _, path := range paths {
		if strings.HasSuffix(path, ".tar") {
			archives = append(archives, path)
			continue
		}
		inside, err := filepath.Glob(filepath.Join(path, "*.tar"))
		if err != nil {
			return nil, fmt.Errorf("list the images in %s: %w", path, err)
		}
		archives = append(archives, inside...)
	}
	return archives, nil
}

func (i Importer) importOne(ctx context.Context, archive string) error {
	mark := filepath.Join(i.Marks, filepath.Base(archive))
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	cmd := exec.CommandContext(ctx, i.Ctr, "--address", i.Socket, "--namespace", "k8s.io", "images", "import", archive)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("import image %s: %w\n%s", archive, err, bytes.TrimSpace(output))
	}
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		return fmt.Errorf("mark image %s as imported: %w", archive, err)
	}
	return nil
}
