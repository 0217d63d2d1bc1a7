//go:build linux

package sandbox

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"quorate.dev/quorate/sandbox/build"
	"quorate.dev/quorate/sandbox/debian"
	"quorate.dev/quorate/sandbox/image"
	"quorate.dev/quorate/sandbox/node"
	"quorate.dev/quorate/sandbox/progress"
)

// Programs locates the programs and images that sandboxes run.
type Programs struct {
	dirs     map[string]string // by component name
	ImageDir string
	Images   []string // file names of the archives in ImageDir
}

// ProbeImage is the image of the sandbox's own pods.
const ProbeImage = "quorate.dev/sandbox/probe:v1"

// EtcdImage returns the public image reference of an etcd version.
func EtcdImage(version string) string { return "gcr.io/etcd-development/etcd:" + version }

// Build installs missing Debian packages, and builds every program and image that is not in the cache yet.
func Build(ctx context.Context, p progress.Progress) (Programs, error) {
	if err := install(ctx, p); err != nil {
		return Programs{}, err
	}
	cache, err := build.Open(ctx)
	if err != nil {
		return Programs{}, err
	}
	programs := Programs{dirs: map[string]string{}, ImageDir: filepath.Join(cache.Dir, "images-"+image.Format)}
	for _, component := range build.Components() {
		dir, err := buildOne(ctx, cache, component, p)
		if err != nil {
			return Programs{}, err
		}
		programs.dirs[component.Name] = dir
	}
	return programs, programs.writeImages(ctx, cache)
}

func install(ctx context.Context, p progress.Progress) error {
	missing := debian.Missing()
	if len(missing) == 0 {
		return nil
	}
	var names []string
	for _, m := range missing {
		names = append(names, m.Name)
	}
	list := strings.Join(names, ", ")
	return p.Do("installing "+list, "installed "+list, 30*time.Second, func() error {
		return debian.Install(ctx, missing)
	})
}

func buildOne(ctx context.Context, cache *build.Cache, component build.Component, p progress.Progress) (string, error) {
	has, err := cache.Has(component)
	if err != nil {
		return "", err
	}
	if has {
		return cache.Build(ctx, component)
	}
	var dir string
	what := component.Name
	if !strings.HasSuffix(what, component.Version) {
		what += " " + component.Version
	}
	err = p.Do("building "+what, "built "+what, component.Takes, func() error {
		dir, err = cache.Build(ctx, component)
		return err
	})
	return dir, err
}

// dir returns the directory of a component's programs.
func (p Programs) dir(component string) string { return p.dirs[component] }

// etcd returns the directory of the etcd version that the API server uses.
func (p Programs) etcd() string {
	return p.dir(build.Etcd(build.EtcdVersions[len(build.EtcdVersions)-1]).Name)
}

// writeImages writes the archives of the images that every node imports. The name of each archive identifies the build
// of its program.
func (p *Programs) writeImages(ctx context.Context, cache *build.Cache) error {
	probe := filepath.Join(p.dir("probe"), "probe")
	pod := func(reference string, entrypoint ...string) image.Image {
		return image.Image{Reference: reference, Programs: map[string]string{"/probe": probe}, Entrypoint: entrypoint}
	}
	images := map[string]image.Image{
		"pause-" + filepath.Base(p.dir("probe")): pod(node.PauseImage, "/probe", "pause"),
		filepath.Base(p.dir("probe")):            pod(ProbeImage, "/probe"),
	}
	for _, version := range build.EtcdVersions {
		dir := p.dir(build.Etcd(version).Name)
		images[filepath.Base(dir)] = etcdImage(version, dir)
	}
	for _, name := range sortedKeys(images) {
		archive := name + ".tar"
		p.Images = append(p.Images, archive)
		if _, err := cache.Once(ctx, filepath.Join(filepath.Base(p.ImageDir), archive),
			images[name].Write); err != nil {
			return err
		}
	}
	return nil
}

func etcdImage(version, dir string) image.Image {
	programs := map[string]string{}
	for _, program := range []string{"etcd", "etcdctl", "etcdutl"} {
		programs["/usr/local/bin/"+program] = filepath.Join(dir, program)
	}
	return image.Image{Reference: EtcdImage(version), Programs: programs, Entrypoint: []string{"/usr/local/bin/etcd"}}
}
