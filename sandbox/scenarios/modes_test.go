package scenarios

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// modes lists the modes of quorate install, with the kinds of changes that are tested in each. If QUORATE_EVERY_CHANGE
// is set, all changes are tested in each mode, which takes five minutes longer. From mode to mode, etcd is upgraded,
// downgraded, and upgraded again.
var modes = []struct {
	name, version string
	kinds         []string
}{
	{"cronjob", "3.7.3", []string{"found", "upgrade"}},
	{"loop", modern, []string{"found", "resize", "replace", "stop", "watch"}},
	{"indexed-job", "3.7.3", []string{"found", "resize"}},
}

// changeModes replaces the installed mode with each mode in turn, and makes changes in each. Quorate runs from its
// image, with the rights of its service account. The cluster must be the same across all modes.
func (w *world) changeModes(url string) {
	w.t.Helper()
	id := w.requireOneCluster("a", 3)
	files := map[string]string{}
	for _, mode := range modes {
		said := w.installed("install", "--mode", mode.name, "--image", deployedImage, "--config", w.modeSettings(url))
		if mode.name == "indexed-job" && !strings.Contains(said, "deleted Deployment quorate-system/quorate\n") {
			w.t.Errorf("the loops are left: %s", said)
		}
		m := &walked{world: w, mode: mode.name, files: files, version: w.status("a").Version}
		for _, change := range []struct {
			kind string
			make func()
		}{
			{"found", m.foundOne}, {"resize", m.shrinkAndGrow}, {"upgrade", func() { m.upgrade(mode.version) }}, {"replace", m.replace}, {"stop", m.stopAndStart},
			{"watch", m.watch},
		} {
			if slices.Contains(mode.kinds, change.kind) || change.kind != "watch" && os.Getenv("QUORATE_EVERY_CHANGE") != "" {
				change.make()
			}
		}
		if now := w.requireOneCluster("a", 3); now != id {
			w.t.Errorf("in mode %s, cluster %s became %s", mode.name, id, now)
		}
	}
	w.installed("uninstall")
	if there := w.installed("uninstall", "--print"); there != "" {
		w.t.Errorf("uninstall leaves\n%s", there)
	}
	if now := w.requireOneCluster("a", 3); now != id {
		w.t.Errorf("the cluster was %s and is %s", id, now)
	}
}

// modeSettings writes the configuration file for all modes, and returns its path. Loops read git and etcd often.
func (w *world) modeSettings(url string) string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "quorate.yaml")
	settings := fmt.Sprintf(`
apiVersion: config.quorate.dev/v1alpha1
kind: Configuration
kubernetes: {namespaces: [%s]}
backup: {image: %q}
loop: {gitInterval: 1s, etcdInterval: 3s}
sources:
- location: %q
  branch: main
  path: clusters
  policy: {backupDestinations: ["volume://backups"]}
`, w.namespace, deployedImage, url)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// walked is a mode under test. Cluster a has three members before and after each kind of change.
type walked struct {
	*world
	mode    string
	files   map[string]string // all declarations by path
	version string            // etcd version of cluster a
	jobs    int
}

// foundOne bootstraps a new cluster with one member.
func (m *walked) foundOne() {
	m.t.Helper()
	m.files["clusters/"+m.mode+".yaml"] = declaration(m.mode, modern, one)
	m.push("a cluster is founded", "Converged", three)
	m.requireOneCluster(m.mode, 1)
}

// shrinkAndGrow removes two members and then adds two members.
func (m *walked) shrinkAndGrow() {
	m.t.Helper()
	m.push("a cluster shrinks", "Converged", one)
	m.requireOneCluster("a", 1)
	m.push("a cluster grows", "Converged", three)
}

// upgrade changes the version, possibly to a lower version. This restarts each pod.
func (m *walked) upgrade(version string) {
	m.t.Helper()
	m.version = version
	m.push("etcd is changed to "+version, "Converged", three)
	m.requireVersion(version)
}

// replace deletes the volume of a member.
func (m *walked) replace() {
	m.t.Helper()
	members := m.memberIDs("a")
	m.loseVolume("a-1")
	m.until("a member that has lost its volume is replaced", func() error {
		if now := m.memberIDs("a"); now["a-1"] == members["a-1"] || len(now) != len(members) || m.status("a").Rule != "Converged" {
			return fmt.Errorf("members %v, were %v, and %s", now, members, m.status("a").Rule)
		}
		return nil
	})
	now := m.memberIDs("a")
	if members["a-1"] = now["a-1"]; !maps.Equal(now, members) {
		m.t.Errorf("in mode %s, members other than a-1 were replaced: %v", m.mode, now)
	}
}

// stopAndStart stops the cluster and starts it again.
func (m *walked) stopAndStart() {
	m.t.Helper()
	m.push("a cluster is stopped", "Stop", three, "lifecycle: Stopped")
	m.waitForPods("a", 0)
	m.push("a cluster is started", "Converged", three)
}

// push declares cluster a with this spec, and waits until the cluster is reported with the given rule.
func (m *walked) push(what, rule string, spec ...string) {
	m.t.Helper()
	m.files["clusters/a.yaml"] = declaration("a", m.version, spec...)
	revision := "main@sha1:" + m.repository.push(m.files)
	m.until(what, func() error {
		for path := range m.files {
			name := strings.TrimSuffix(strings.TrimPrefix(path, "clusters/"), ".yaml")
			if _, err := m.object(etcdclusters, name); err != nil {
				return err
			}
			if s := m.status(name); s.DeclaredRevision != revision || s.Rule != "Converged" && s.Rule != rule {
				return fmt.Errorf("%+v", s)
			}
		}
		return nil
	})
}

// until triggers a run if necessary, and waits until holds returns nil.
func (m *walked) until(what string, holds func() error) {
	m.t.Helper()
	if m.mode != "loop" { // a loop needs no trigger
		m.jobs++
		m.kubectl("--namespace", systemNamespace, "create", "job", fmt.Sprintf("%s-%d", m.mode, m.jobs), "--from=cronjob/quorate")
	}
	if err := poll(m.t.Context(), 3*patience, holds); err != nil {
		m.t.Fatalf("in mode %s, %s: %v", m.mode, what, err)
	}
}
