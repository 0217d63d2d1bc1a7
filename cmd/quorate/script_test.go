package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"quorate.dev/quorate/clusters/kube/kubetest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected output in testdata/script")

func TestMain(m *testing.M) {
	if os.Getenv(runsMain) != "" {
		if bytes, err := strconv.ParseInt(os.Getenv(hasMemory), 10, 64); err == nil {
			memoryLimit = func() int64 { return bytes }
		}
		main()
	}
	testscript.Main(tests{kubetest.Tests{M: m}}, map[string]func(){"quorate": main, plugin: main})
}

// tests runs all tests in a process with the name of the program, so that the child processes of a command run commands
// instead of tests.
type tests struct{ kubetest.Tests }

// Run implements testscript.TestingM.
func (t tests) Run() int {
	os.Args[0] = "quorate"
	return t.Tests.Run()
}

// TestScripts runs command lines as users type them, without a Kubernetes cluster.
func TestScripts(t *testing.T) {
	definition, err := filepath.Abs("../../clusters/v1alpha1/crd/etcd.quorate.dev_etcdclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := filepath.Abs("../../testdata/backup/etcd-3.6.db.zst")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "../../testdata/script",
		UpdateScripts:      *rewrite,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("CRD", definition)
			env.Setenv("SNAPSHOT", snapshot)
			env.Setenv("ETCDS", os.Getenv("QUORATE_ETCD_DIR"))
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			env.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
			for _, role := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+role+"_NAME", "script")
				env.Setenv("GIT_"+role+"_EMAIL", "script@localhost")
				env.Setenv("GIT_"+role+"_DATE", "2026-01-01T00:00:00Z")
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "etcd" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return os.Getenv("QUORATE_ETCD_DIR") != "", nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "configure": configure, "backups": storeBackups, "spoil": spoilBackups, "lose": loseBackup},
	})
}

// exits runs a command that must end with the given exit code:
//
//	exits 3 quorate validate --source .
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
