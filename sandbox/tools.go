//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"quorate.dev/quorate/sandbox/build"
)

// LinkTools creates a directory with links to the programs that users and tests call directly: kubectl, kube-apiserver,
// the newest etcdctl and etcdutl, and a directory etcd-VERSION for each etcd version.
func (p Programs) LinkTools(dir string) error {
	links := map[string]string{}
	for _, program := range []string{"kubectl", "kube-apiserver"} {
		links[program] = filepath.Join(p.dir("kubernetes"), program)
	}
	for _, program := range []string{"etcdctl", "etcdutl"} {
		links[program] = filepath.Join(p.etcd(), program)
	}
	for _, version := range build.EtcdVersions {
		links["etcd-"+strings.TrimPrefix(version, "v")] = p.dir(build.Etcd(version).Name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the directory of tools: %w", err)
	}
	for name, target := range links {
		link := filepath.Join(dir, name)
		_ = os.Remove(link + ".new") // an interrupted run may have left it
		if err := os.Symlink(target, link+".new"); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	return nil
}

// tools returns the sandbox's own tools directory, in which Exec finds programs that the host lacks.
func (s *Sandbox) tools() string { return filepath.Join(s.Dir(), "tools") }
