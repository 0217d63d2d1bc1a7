package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRecoverUsesReceivedSnapshotDatabase checks the recovery of a member that was killed after it recorded a snapshot
// from the leader, but before it put the snapshot's database in place. That database is still next to the member's own.
func TestRecoverUsesReceivedSnapshotDatabase(t *testing.T) {
	t.Parallel()
	r := newRecoveries(t)
	at := filepath.Join(r.dir(), "member", "snap")
	before, err := os.ReadFile(filepath.Join(at, "db"))
	if err != nil {
		t.Fatal(err)
	}
	url, etcd := r.start(r.dir(), "--snapshot-count=5")
	for n := range 40 {
		if status, said := post(t, url+"/v3/kv/put", fmt.Sprintf(`{"key":"bA==","value":"%s"}`, strings.Repeat("dmR2", n+1))); status != http.StatusOK {
			t.Fatal(said)
		}
	}
	_ = etcd.Process.Signal(os.Interrupt)
	_ = etcd.Wait()
	snaps, err := filepath.Glob(filepath.Join(at, "*.snap"))
	if err != nil || len(snaps) == 0 {
		t.Fatal(snaps, err)
	}
	_, index, _ := strings.Cut(strings.TrimSuffix(filepath.Base(slices.Max(snaps)), ".snap"), "-")
	if err := os.Rename(filepath.Join(at, "db"), filepath.Join(at, index+".snap.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "db"), before, 0o600); err != nil {
		t.Fatal(err)
	}
	got := r.recover(r.dir())
	if got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	_, flags, _ := strings.Cut(got.out, "TLS flags and\n")
	url, _ = r.start(r.dir(), strings.Fields(flags)[3:]...)
	if _, said := post(t, url+"/v3/kv/range", `{"key":"bA=="}`); !strings.Contains(said, `"value":"`+strings.Repeat("dmR2", 40)+`"`) {
		t.Error(said)
	}
}
