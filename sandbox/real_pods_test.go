//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"quorate.dev/quorate/sandbox"
	"quorate.dev/quorate/sandbox/build"
)

const etcdWithVolume = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 64Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: etcd}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532}
  containers:
  - name: etcd
    image: %s
    args: [--data-dir=/data/etcd, --listen-client-urls=http://0.0.0.0:2379, --advertise-client-urls=http://127.0.0.1:2379]
    readinessProbe: {httpGet: {path: /health, port: 2379}, periodSeconds: 1}
    securityContext: {readOnlyRootFilesystem: true}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

func (s *subject) volume(t *testing.T) {
	for _, version := range build.EtcdVersions {
		objects := fmt.Sprintf(etcdWithVolume, sandbox.EtcdImage(version))
		s.kubectl(t, objects, "apply", "-f", "-")
		s.kubectl(t, "", "wait", "--for=condition=Ready", "pod/etcd", "--timeout=60s")
		if said := s.kubectl(t, "", "exec", "etcd", "--", "etcdctl", "version"); !strings.Contains(said, strings.TrimPrefix(version, "v")) {
			t.Errorf("etcdctl of %s prints %q", version, said)
		}
		s.kubectl(t, "", "exec", "etcd", "--", "etcdctl", "put", "written", "by a user that is not root")
		if dirs := s.volumes(t); len(dirs) != 1 {
			t.Errorf("the node has the volumes %v, want 1", dirs)
		}
		s.kubectl(t, objects, "delete", "--wait", "-f", "-")
		until(t, "the volume is deleted with its claim", func() bool { return len(s.volumes(t)) == 0 })
	}
}

func (s *subject) volumes(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(s.Dir(), "node-1", "lib", "volumes", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

const greeter = `
apiVersion: v1
kind: Pod
metadata: {name: greeter}
spec:
  restartPolicy: Never
  securityContext: {runAsNonRoot: true}
  containers: [{name: greeter, image: "example.test/greeter:v1", args: [reader]}]
`

func (s *subject) load(t *testing.T) {
	for _, greeting := range []string{"hello", "good day"} {
		s.must(t, "load", "example.test/greeter:v1="+program(t, greeting))
		s.kubectl(t, greeter, "apply", "-f", "-")
		s.kubectl(t, "", "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/greeter", "--timeout=60s")
		if said := s.kubectl(t, "", "logs", "greeter"); said != greeting+" reader\n" {
			t.Errorf("the loaded program prints %q", said)
		}
		s.kubectl(t, greeter, "delete", "--wait", "-f", "-")
	}
}

// program builds a static program that prints the greeting, followed by its first argument.
func program(t *testing.T, greeting string) string {
	t.Helper()
	dir := t.TempDir()
	source := fmt.Sprintf("package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() { fmt.Println(%q, os.Args[1]) }\n", greeting)
	for file, content := range map[string]string{"go.mod": "module greeter\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", "greeter", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	run(t, cmd)
	return filepath.Join(dir, "greeter")
}

func (s *subject) repair(t *testing.T) {
	s.killMachine(t, "node-1")
	if s.status(t).Up {
		t.Error("it is reported as up without its node")
	}
	s.must(t, "up")
	s.killMachine(t, "control-plane")
	s.must(t, "up")
	if status := s.status(t); !status.Up {
		t.Errorf("status is %+v", status)
	}
}

// killMachine kills a machine without using the sandbox program.
func (s *subject) killMachine(t *testing.T, name string) {
	t.Helper()
	for _, m := range s.status(t).Machines {
		if m.Name != name {
			continue
		}
		if err := syscall.Kill(m.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		until(t, name+" has ended", func() bool { return syscall.Kill(m.PID, 0) != nil })
	}
}

func (s *subject) nodes(t *testing.T) {
	s.must(t, "up", "--nodes", "3")
	zones := s.kubectl(t, "", "get", "nodes", "-o", `jsonpath={.items[*].metadata.labels.topology\.kubernetes\.io/zone}`)
	if zones != "zone-1 zone-2 zone-3" {
		t.Errorf("the nodes are in %q", zones)
	}
	s.must(t, "node", "stop", "node-2")
	if left := s.processesIn(t, "node-2"); len(left) > 0 {
		t.Errorf("processes %v of a stopped node run", left)
	}
	s.kubectl(t, "", "wait", "--for=condition=Ready=Unknown", "node/node-2", "--timeout=60s")
	s.must(t, "node", "start", "node-2")
	s.kubectl(t, "", "wait", "--for=condition=Ready", "node/node-2", "--timeout=60s")
	if status := s.status(t); !status.Up {
		t.Errorf("status is %+v", status)
	}
}
