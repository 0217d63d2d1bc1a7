package scenarios

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// parallelTests is the default for -test.parallel. It is suitable for two cores, because bootstrapping a cluster
// consists mostly of waiting for etcd and the kubelets.
const parallelTests = "3"

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetLogger(logr.Discard()) // otherwise, client-go logs every connection that a test cuts
	if !given("test.parallel") {
		_ = flag.Set("test.parallel", parallelTests)
	}
	report, err := watchFailures()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if node.up && os.Getenv("QUORATE_KEEP_SANDBOX") != "1" {
		if err := node.down(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	report()
	os.Exit(code)
}

func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
