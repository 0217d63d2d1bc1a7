package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// platform is an operating system and an architecture.
type platform struct{ os, arch string }

// platforms returns the platforms for which programs are built.
func platforms() []platform {
	var all []platform
	for _, os := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			all = append(all, platform{os, arch})
		}
	}
	return all
}

// suffix returns the suffix of the program's file name.
func (p platform) suffix() string {
	if p.os == "windows" {
		return p.os + "-" + p.arch + ".exe"
	}
	return p.os + "-" + p.arch
}

// program builds the program for a platform and writes its SBOM.
func (r *release) program(ctx context.Context, p platform) error {
	file := filepath.Join(r.out, r.name(p.suffix()))
	if err := build(ctx, r.root, file, r.version, p); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the build information of %s: %w", file, err)
	}
	sum, err := sumOf(file)
	if err != nil {
		return err
	}
	return r.writeSBOM(r.name(p.suffix()), "APPLICATION", sum, info)
}

// fetching returns the names of the settings that determine which Go version is used and how Go downloads modules.
func fetching() []string {
	return []string{"GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOINSECURE", "GOAUTH", "GOPATH",
		"GOMODCACHE", "GOCACHE", "GOTOOLCHAIN"}
}

// environment returns the environment of a build. It disables all settings from "go env -w", which override empty
// variables, except the settings that fetching lists.
func environment(ctx context.Context, p platform) ([]string, error) {
	said, err := exec.CommandContext(ctx, "go", append([]string{"env"}, fetching()...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("read Go's settings: %w", err)
	}
	all := append(os.Environ(), "GOENV=off", "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1",
		"GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off")
	for i, value := range strings.Split(strings.TrimSuffix(string(said), "\n"), "\n") {
		all = append(all, fetching()[i]+"="+value)
	}
	return all, nil
}

// build builds the program in the same way as "make build", regardless of build settings in the environment: the same
// commit, tag and Go version produce the same file in any directory.
func build(ctx context.Context, root, file, version string, p platform) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("find %s: %w", file, err)
	}
	compile := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "disable_grpc_modules", "-buildvcs=true",
		"-ldflags", "-s -w -X main.release="+version, "-o", file, "./cmd/quorate")
	compile.Dir = root
	if compile.Env, err = environment(ctx, p); err != nil {
		return err
	}
	if said, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("build quorate for %s/%s: %w\n%s", p.os, p.arch, err, said)
	}
	return nil
}
