package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Cache builds components and stores their programs.
type Cache struct {
	Dir     string // directory of the cache
	Sources string // directory with the components' modules
	target  string // toolchain and platform according to the go command
}

// Open locates the cache, the sources and the Go toolchain.
func Open(ctx context.Context) (*Cache, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the user's cache directory: %w", err)
	}
	sources, err := findSources()
	if err != nil {
		return nil, err
	}
	target, err := goCommand(ctx, sources, "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return nil, fmt.Errorf("get the version of the go command (the sandbox is built from source and needs Go): %w",
			err)
	}
	return &Cache{Dir: filepath.Join(user, "quorate-sandbox"), Sources: sources, target: string(target)}, nil
}

// findSources returns the path of sandbox/build. It searches the parent directories of the program and of the working
// directory, because a program cannot embed the files of other modules.
func findSources() (string, error) {
	var starts []string
	if program, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(program))
	}
	if working, err := os.Getwd(); err == nil {
		starts = append(starts, working)
	}
	for _, dir := range starts {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			sources := filepath.Join(dir, "sandbox", "build")
			if _, err := os.Stat(filepath.Join(sources, "kubernetes", "go.mod")); err == nil {
				return sources, nil
			}
		}
	}
	return "", fmt.Errorf("find the sources in sandbox/build above %s: "+
		"keep the program in the checkout, or run it there", strings.Join(starts, " and "))
}

// name returns the name of the component's cache entry.
func (c *Cache) name(component Component) (string, error) {
	key, err := c.key(component)
	if err != nil {
		return "", err
	}
	return component.Name + "-" + key, nil
}

// key returns a hash of everything that could change the component's programs.
func (c *Cache) key(component Component) (string, error) {
	hash := sha256.New()
	component.Takes = 0
	fmt.Fprintf(hash, "%s\n%+v\n", c.target, component)
	dir := filepath.Join(c.Sources, component.Name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("read the source of %s: %w", component.Name, err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", fmt.Errorf("read the source of %s: %w", component.Name, err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", entry.Name(), len(content), content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// Has reports whether the component is already built.
func (c *Cache) Has(component Component) (bool, error) {
	name, err := c.name(component)
	if err != nil {
		return false, err
	}
	return exists(filepath.Join(c.Dir, name))
}

// Build builds the component if it is not in the cache, and returns the directory of its programs.
func (c *Cache) Build(ctx context.Context, component Component) (string, error) {
	name, err := c.name(component)
	if err != nil {
		return "", err
	}
	return c.Once(ctx, name, func(unfinished string) error {
		if err := os.Mkdir(unfinished, 0o755); err != nil {
			return fmt.Errorf("create a directory in the cache: %w", err)
		}
		for _, program := range component.Programs {
			if err := c.compile(ctx, component, program, unfinished); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *Cache) compile(ctx context.Context, component Component, program Program, into string) error {
	cmd := goCommand(ctx, filepath.Join(c.Sources, component.Name), "build", "-mod=readonly", "-trimpath",
		"-buildvcs=false",
		"-tags", component.Tags, "-ldflags", strings.TrimSpace("-s -w "+component.LDFlags),
		"-o", filepath.Join(into, program.Name), program.Package)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s of %s %s: %w\n%s", program.Name, component.Name, component.Version, err,
			lastLines(output, 15))
	}
	for _, link := range program.Links {
		if err := os.Symlink(program.Name, filepath.Join(into, link)); err != nil {
			return fmt.Errorf("link %s to %s: %w", link, program.Name, err)
		}
	}
	return nil
}

// goCommand returns a go command that ignores the caller's build settings. The command ends with its caller, even if
// the caller is killed.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	cmd.SysProcAttr = endWithCaller()
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
