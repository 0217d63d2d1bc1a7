package scenarios

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// sandbox is the Kubernetes cluster shared by all tests.
type sandbox struct {
	once sync.Once
	err  error
	up   bool

	name       string
	kubeconfig string
	config     *rest.Config
	kube       kubernetes.Interface
	objects    dynamic.Interface
	network    *os.File
}

var node = sandbox{name: cmp.Or(os.Getenv("QUORATE_SANDBOX"), "test")}

// root returns the directory of the checkout. Tests run in their package's directory.
func root() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}

// binary returns the path of a binary in the directory QUORATE_BIN or, by default, in the checkout's bin directory.
func binary(name string) string {
	if dir := os.Getenv("QUORATE_BIN"); dir != "" {
		return filepath.Join(dir, name)
	}
	return filepath.Join(root(), "bin", name)
}

// theSandbox starts the sandbox if it is not running and installs the custom resource definition, once for all tests.
func theSandbox(t testing.TB) *sandbox {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the sandbox")
	}
	node.once.Do(func() { node.err = node.start("--nodes=3") })
	if node.err != nil {
		t.Fatal(node.err)
	}
	return &node
}

func (s *sandbox) start(nodes string) error {
	for _, name := range []string{"quorate", "sandbox"} {
		if _, err := os.Stat(binary(name)); err != nil {
			return fmt.Errorf("build the binaries first (make build): %w", err)
		}
	}
	up := exec.Command(binary("sandbox"), "up", "--name", s.name, nodes)
	up.Stdout, up.Stderr = os.Stderr, os.Stderr
	if err := up.Run(); err != nil {
		return fmt.Errorf("start sandbox %s: %w", s.name, err)
	}
	s.up = true
	if err := s.connect(); err != nil {
		return err
	}
	out, err := exec.Command(binary("quorate"), "install", "--kubeconfig", s.kubeconfig).CombinedOutput()
	if err != nil {
		return fmt.Errorf("install the custom resource definition: %w: %s", err, out)
	}
	return nil
}

func (s *sandbox) connect() error {
	out, err := exec.Command(binary("sandbox"), "kubeconfig", "--name", s.name).Output()
	if err != nil {
		return fmt.Errorf("ask for the kubeconfig of sandbox %s: %w", s.name, err)
	}
	s.kubeconfig = strings.TrimSpace(string(out))
	if s.config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig); err != nil {
		return fmt.Errorf("read the kubeconfig of sandbox %s: %w", s.name, err)
	}
	s.config.QPS, s.config.Burst = 200, 400
	if s.kube, err = kubernetes.NewForConfig(s.config); err != nil {
		return fmt.Errorf("connect to sandbox %s: %w", s.name, err)
	}
	if s.objects, err = dynamic.NewForConfig(s.config); err != nil {
		return fmt.Errorf("connect to sandbox %s: %w", s.name, err)
	}
	return s.openNetwork()
}

// stopNode stops a node as a power failure would, and startNode starts it again.
func (s *sandbox) stopNode(name string) error  { return s.command("node", "stop", name) }
func (s *sandbox) startNode(name string) error { return s.command("node", "start", name) }

func (s *sandbox) down() error { return s.command("down") }

func (s *sandbox) command(args ...string) error {
	out, err := exec.Command(binary("sandbox"), append(args, "--name", s.name)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("sandbox %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
