package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// killing runs quorate in processes that are killed just before the nth system call of a given kind.
type killing struct {
	*testing.T
	strace, quorate string
}

// newKilling skips the test if strace is missing or not allowed to trace. "make test" installs strace.
func newKilling(t *testing.T) killing {
	t.Helper()
	strace, err := exec.LookPath("strace")
	switch {
	case err != nil && os.Getenv("QUORATE_BIN") != "":
		t.Fatal("no strace, which kills at the nth write; bin/sandbox build must install it")
	case err != nil:
		t.Skip("no strace, which kills at the nth write")
	}
	if out, err := exec.Command(strace, "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace: %v: %s", err, out)
	}
	quorate := filepath.Join(t.TempDir(), "quorate") // TestMain checks the name
	if err := os.Symlink(testProgram(t), quorate); err != nil {
		t.Fatal(err)
	}
	return killing{t, strace, quorate}
}

// at runs a command line and kills it at the nth call. It returns nil if the command ends before that call.
func (k killing) at(call string, n int, args ...string) (said string, err error) {
	var out bytes.Buffer
	quorate := exec.CommandContext(k.Context(), k.strace, slices.Concat([]string{"-f", "-qq", "-o", os.DevNull, "-e", "trace=" + call,
		"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n), k.quorate}, args)...)
	quorate.Env, quorate.Stderr = append(os.Environ(), "GOMAXPROCS=1", "TMPDIR="+k.TempDir()), &out
	err = quorate.Run()
	return out.String(), err
}
