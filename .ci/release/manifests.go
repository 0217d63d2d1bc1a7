package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"

	"quorate.dev/quorate/deploy"
)

// live is a configuration file with the custom resources as the source.
const live = `apiVersion: config.quorate.dev/v1alpha1
kind: Configuration
log:
  format: json
sources:
- location: ` + deploy.Cluster + "\n"

// install writes a manifest that kubectl can apply without changes. It runs a loop over the custom resources in the
// cluster. Other modes and sources require "quorate install", the chart, or an overlay of deploy.
func (r *release) install(image string) error {
	objects, err := deploy.Render(deploy.Options{Mode: deploy.Loop, Image: image, Config: live})
	if err != nil {
		return fmt.Errorf("render install.yaml: %w", err)
	}
	return r.write("install.yaml", []byte(strings.Join(objects, "---\n")))
}

// chart writes the chart archive, with the release's image as the default.
func (r *release) chart(image string) error {
	c, err := loader.LoadDir(filepath.Join(r.root, "deploy", "chart"))
	if err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	c.Metadata.Version, c.Metadata.AppVersion = strings.TrimPrefix(r.version, "v"), r.version
	c.ModTime, c.SchemaModTime = r.time, r.time
	for _, f := range append(append(c.Raw, c.Templates...), c.Files...) {
		f.ModTime = r.time
		if f.Name == "values.yaml" {
			none := []byte("There is no default.\nimage: \"\"\n")
			if !bytes.Contains(f.Data, none) {
				return fmt.Errorf("set the image in deploy/chart/values.yaml: expected it to contain %q", none)
			}
			f.Data = bytes.Replace(f.Data, none, fmt.Appendf(nil,
				"The default is the release's image.\nimage: %q\n", image), 1)
		}
	}
	if _, err := util.Save(c, r.out); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}
