package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"quorate.dev/quorate/deploy"
)

// TestChartOfARelease checks that the chart archive has the version and image of the release, requires only a source to
// be rendered, and is reproducible.
func TestChartOfARelease(t *testing.T) {
	const image = "registry.example.com/quorate:v1.2.3@sha256:1234"
	var archives [][]byte
	for range 2 {
		r := newRelease(t)
		if err := r.chart(image); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, []byte(readFile(t, filepath.Join(r.out, "quorate-1.2.3.tgz"))))
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("they differ")
	}
	c, err := loader.LoadArchive(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata.Version != "1.2.3" || c.Metadata.AppVersion != "v1.2.3" {
		t.Errorf("it is %+v", c.Metadata)
	}
	const source = "https://git.example.com/fleet.git"
	got, err := template(t, c, deploy.Namespace, object{"source": source})
	if err != nil {
		t.Fatal(err)
	}
	requireSame(t, got, kustomized(t, deploy.Options{Mode: deploy.CronJob, Image: image, Source: source}))
}

// TestInstall checks that install.yaml runs the image of the release.
func TestInstall(t *testing.T) {
	const image = "registry.example.com/quorate:v1.2.3@sha256:1234"
	r := newRelease(t)
	if err := r.install(image); err != nil {
		t.Fatal(err)
	}
	loop := objects(t, readFile(t, filepath.Join(r.out, "install.yaml")))["Deployment quorate-system/quorate"]
	if text := fmt.Sprint(loop); !strings.Contains(text, "image:"+image) {
		t.Errorf("the loop is %s", text)
	}
}
