// Command release builds a release of Quorate from a tagged commit: programs, an image, a chart, manifests, SBOMs, and
// checksums. It is a separate module, so that Quorate does not depend on Helm.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "version, such as v0.1.0: a tag of the checked-out commit")
	flag.StringVar(&r.repository, "repository", "quorate.dev/quorate", "repository from which the image will be pulled")
	flag.StringVar(&r.root, "root", ".", "root of the source tree")
	flag.StringVar(&r.out, "out", "", "directory for the release; an earlier release in it is deleted")
	flag.Parse()
	if err := r.make(context.Background(), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// release is a release of Quorate.
type release struct {
	version, repository, root, out string
	// commit is the commit from which the release is built. time is the commit time, which is used for all files.
	commit string
	time   time.Time
	// notes is the changelog section for this version.
	notes string
}

// name returns the name of a file in the release.
func (r *release) name(of string) string { return "quorate-" + r.version + "-" + of }

// make builds all files of the release, reports progress, and verifies the checksums.
func (r *release) make(ctx context.Context, said io.Writer) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.clear(); err != nil {
		return err
	}
	for _, p := range platforms() {
		started := time.Now()
		if err := r.program(ctx, p); err != nil {
			return err
		}
		fmt.Fprintf(said, "%s in %s\n", r.name(p.suffix()), time.Since(started).Round(time.Second))
	}
	digest, err := r.image()
	if err != nil {
		return err
	}
	image := r.repository + ":" + r.version + "@" + digest
	for _, step := range []func() error{
		func() error { return r.write(r.name("image.digest"), []byte(digest+"\n")) },
		func() error { return r.write(r.name("notes.md"), []byte(r.notes)) },
		func() error { return r.install(image) },
		func() error { return r.chart(image) },
		func() error { return writeSums(r.out) },
		func() error { return checkSums(r.out) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Fprintf(said, "image %s\nall files are in %s; sign %s, which contains the checksums\n", image, r.out, sumsFile)
	return nil
}

// clear creates an empty output directory. If the directory already exists, it is deleted only if it contains a
// complete release.
func (r *release) clear() error {
	there, err := os.ReadDir(r.out)
	if err == nil && len(there) > 0 {
		if err := checkSums(r.out); err != nil {
			return fmt.Errorf("%s is neither empty nor a complete release; delete it: %w", r.out, err)
		}
		err = os.RemoveAll(r.out)
	}
	if err == nil || os.IsNotExist(err) {
		err = os.MkdirAll(r.out, 0o755)
	}
	if err != nil {
		return fmt.Errorf("create the release directory: %w", err)
	}
	return nil
}

func (r *release) write(name string, text []byte) error {
	if err := os.WriteFile(filepath.Join(r.out, name), text, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
