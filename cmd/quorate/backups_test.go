package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
)

// storeBackups stores backups of ns/a, encrypted if a recipients file is given:
//
//	backups DIRECTORY RECIPIENTS|none SLOT...
func storeBackups(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: backups directory recipients|none slot...")
	}
	o := backup.Order{
		Cluster: store.Cluster{Namespace: "ns", Name: "a"}, Spool: ts.Getenv("WORK"), Encoding: backup.Encoding{Compress: true},
		Inspect: func(_ context.Context, file string) (snapshot.Facts, error) { return snapshot.Inspect(file) },
	}
	if args[1] != "none" {
		recipients, err := age.ParseRecipients(strings.NewReader(ts.ReadFile(args[1])))
		ts.Check(err)
		o.Encoding.Recipients = recipients
	}
	bucket, err := store.Location{Directory: ts.MkAbs(args[0])}.Open(context.Background(), store.Options{})
	ts.Check(err)
	content, err := backuptest.Snapshot()
	ts.Check(err)
	for _, slot := range args[2:] {
		o.Slot, err = store.ParseSlot(slot)
		ts.Check(err)
		taken, err := backup.Take(context.Background(), backuptest.Sound(content), o)
		ts.Check(err)
		_, err = taken.Store(context.Background(), bucket, o)
		ts.Check(errors.Join(err, taken.Remove()))
	}
}

// spoilBackups corrupts one byte in every data file of a store:
//
//	spoil DIRECTORY
func spoilBackups(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*", "*", "*", "*.db*"))
	ts.Check(err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		ts.Check(err)
		content[len(content)/2] ^= 1
		ts.Check(os.WriteFile(file, content, 0o600))
	}
}

// loseBackup removes the data of the backup for a slot:
//
//	lose DIRECTORY SLOT
func loseBackup(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*", "*", "*", args[1]+"-*.db*"))
	ts.Check(err)
	for _, file := range files {
		ts.Check(os.Remove(file))
	}
}

// TestSuspectBackupExitsBlocked checks that a backup that may hold wrong data causes exit code 4 in both output
// formats, and that the reason is printed as well as the report.
func TestSuspectBackupExitsBlocked(t *testing.T) {
	m := store.Manifest{Namespace: "ns", Cluster: "a", Data: "x", Snapshot: store.Snapshot{Differs: []string{"a-2"}}}
	for _, output := range []string{"text", "json"} {
		for _, alarms := range [][]string{nil, {"CORRUPT aa"}} {
			m.Snapshot.Alarms = alarms
			var out, stderr bytes.Buffer
			f := backupFlags{output: output, to: "file:///srv"}
			err := f.report(streams{out: &out, err: &stderr}, m)
			if blocked := errors.Is(err, exit(exitBlocked)); blocked != (alarms != nil) || blocked != strings.Contains(stderr.String(), "may hold the wrong data") {
				t.Errorf("%s, %v: %v\n%s", output, alarms, err, stderr.String())
			}
			if !strings.Contains(stderr.String(), "a-2 holds different data") || !strings.Contains(out.String(), "ns") {
				t.Errorf("%s, %v: %s\n%s", output, alarms, out.String(), stderr.String())
			}
		}
	}
}

// TestIsCrash checks which exits of the inspecting process are attributed to the file.
func TestIsCrash(t *testing.T) {
	for said, about := range map[string]bool{
		"panic: page 7 already freed\n\ngoroutine 1 [running]:\n":                             true,
		"inspect s.db: the database is damaged: page 2\npanic: assertion failed: page 3\n":    true,
		"runtime: goroutine stack exceeds 67108864-byte limit\nfatal error: stack overflow\n": true,
		"unexpected fault address 0x7f\nfatal error: fault\n":                                 true,
		"fatal error: runtime: out of memory\n":                                               false,
		"runtime: failed to create new OS thread\npanic({0x1, 0x2})\n":                        false,
		"quorate: unknown command\n":                                                          false,
	} {
		command := exec.Command("/bin/sh", "-c", "exit 2")
		ended, is := errors.AsType[*exec.ExitError](command.Run())
		if !is || isCrash(ended, said) != about {
			t.Errorf("%q: want %t", said, about)
		}
	}
}

// TestInspectApart damages a database and then corrects its checksum, as an attacker could. The process must report the
// damage or read the file, whatever the library does with the file.
func TestInspectApart(t *testing.T) {
	whole := backuptest.MustSnapshot(t)
	inspect := func(content []byte) (snapshot.Facts, error) {
		file := filepath.Join(t.TempDir(), "s.db")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return inspectApart(t.Context(), file)
	}
	if facts, err := inspect(whole); err != nil || facts.Revision != backuptest.Revision {
		t.Fatalf("%+v %v", facts, err)
	}
	if _, err := inspectApart(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil || errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("a file that is not there: %v", err)
	}
	const page, pages = 4096, 5
	chance := rand.New(rand.NewPCG(1, 2))
	damaged := 0
	for range 60 {
		spoiled := bytes.Clone(whole[:len(whole)-sha256.Size])
		// Change the header of a page, or a pointer in the page.
		at := (2+chance.IntN(pages-2))*page + 8*chance.IntN(8)
		binary.LittleEndian.PutUint64(spoiled[at:], chance.Uint64N(1<<[]int{3, 20, 63}[chance.IntN(3)]))
		sum := sha256.Sum256(spoiled)
		_, err := inspect(append(spoiled, sum[:]...))
		switch {
		case errors.Is(err, snapshot.ErrDamaged):
			damaged++
		case err != nil:
			t.Errorf("at %d: %v", at, err)
		}
	}
	if damaged < 10 {
		t.Errorf("only %d of 60 were found", damaged)
	}
}
