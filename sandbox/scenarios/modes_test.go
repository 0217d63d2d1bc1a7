package scenarios

import (
	"fmt"
	"maps"
	"strings"
)

// modes are the ways in which quorate install has Quorate run in a Kubernetes cluster, each with the version that etcd is changed to
// there: up, down, and up once more.
var modes = []struct{ name, version string }{{"cronjob", "3.7.3"}, {"loop", modern}, {"indexed-job", "3.7.3"}}

// changeModes has each mode take the place of the one before it and make every kind of change, from the image and with the rights of
// its account. Whatever runs Quorate comes and goes, the cluster stays.
func (w *world) changeModes(url string) {
	w.t.Helper()
	id := w.requireOneCluster("a", 3)
	files := map[string]string{}
	for _, mode := range modes {
		args := []string{"install", "--mode", mode.name, "--image", deployedImage, "--source", url, "--branch", "main", "--path", "clusters",
			"--", "--namespace=" + w.namespace}
		if mode.name == "loop" {
			args = append(args, "--git-interval=1s")
		}
		said := w.installed(args...)
		if mode.name == "indexed-job" && !strings.Contains(said, "deleted Deployment quorate-system/quorate\n") {
			w.t.Errorf("the loops are left: %s", said)
		}
		m := &walked{world: w, mode: mode.name, files: files}
		m.changes(mode.version)
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

// walked is a mode that is taken through every kind of change.
type walked struct {
	*world
	mode  string
	files map[string]string // all that is declared
	jobs  int
}

// changes founds a cluster, and takes cluster a of three members through what git and the world may do to it.
func (m *walked) changes(version string) {
	m.t.Helper()
	before := m.status("a").Version
	m.files["clusters/"+m.mode+".yaml"] = declaration(m.mode, modern, one)
	m.push("a cluster is founded, and another one shrinks", "Converged", before, one)
	m.requireOneCluster("a", 1)
	m.requireOneCluster(m.mode, 1)
	m.push("a cluster grows", "Converged", before, three)
	m.push("etcd is changed to "+version, "Converged", version, three)
	m.requireVersion(version)

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
		m.t.Errorf("in mode %s, others than a-1 were replaced: %v", m.mode, now)
	}

	m.push("a cluster is stopped", "Stop", version, three, "lifecycle: Stopped")
	if pods := m.podUIDs("a"); len(pods) > 0 {
		m.t.Errorf("in mode %s, pods %v run on", m.mode, pods)
	}
	m.push("a cluster is started", "Converged", version, three)
	m.requireOneCluster("a", 3)
}

// push declares cluster a so, and waits until a rule has nothing left to do for that.
func (m *walked) push(what, rule, version string, spec ...string) {
	m.t.Helper()
	m.files["clusters/a.yaml"] = declaration("a", version, spec...)
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

// until waits for something that Quorate does, as often as it is made to run in this mode.
func (m *walked) until(what string, holds func() error) {
	m.t.Helper()
	if m.mode != "loop" { // which needs nobody to tell it
		m.jobs++
		m.kubectl("--namespace", systemNamespace, "create", "job", fmt.Sprintf("%s-%d", m.mode, m.jobs), "--from=cronjob/quorate")
	}
	if err := poll(m.t.Context(), 3*patience, holds); err != nil {
		m.t.Fatalf("in mode %s, %s: %v", m.mode, what, err)
	}
}
