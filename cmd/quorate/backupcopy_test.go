package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// emptyResult requires that the last backup has left no result.
func (j jobs) emptyResult() {
	j.Helper()
	if text, err := os.ReadFile(j.result); err != nil && !errors.Is(err, fs.ErrNotExist) || len(text) > 0 {
		j.Errorf("result %q, %v", text, err)
	}
}

// TestBackupRequiresClusterID checks that nothing is stored and no result is written if the members have a cluster ID
// other than the one in --cluster-id, even if the earlier backup of the Job exists.
func TestBackupRequiresClusterID(t *testing.T) {
	j := newJobs(t)
	job, _ := thisMinute()
	const other = "15082e1bb141d752"
	for range 2 {
		for _, name := range []string{job, "by-hand"} {
			before := len(j.backups())
			if got := j.backUp(name, "--cluster-id", other); got.code != exitBlocked || !strings.Contains(got.err, "they report the cluster ID ") ||
				!strings.Contains(got.err, ", not "+other) || len(j.backups()) != before {
				t.Errorf("%s: %+v", name, got)
			}
			j.emptyResult()
		}
		if got := j.backUp(job); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
	}
	id := strings.TrimLeft(j.told().ClusterID, "0")
	if got := j.backUp("by-hand", "--cluster-id", other); !strings.Contains(got.err, "cluster ID "+id+", not "+other) {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{job, "by-hand"} {
		if got := j.backUp(name, "--cluster-id", id); got.code != exitOK {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, invalid := range []string{"", "x", "0", "-1", "15082e1bb141d752f"} {
		if got := j.backUp("by-hand", "--cluster-id", invalid); got.code != exitInvalid || !strings.Contains(got.err, "expected ") {
			t.Errorf("%s: %+v", invalid, got)
		}
	}
}

// TestBackupOfUnchangedSource checks that --unchanged accepts a source without clients, including a new one and the
// earlier backup of the Job, and fails once the revision has risen.
func TestBackupOfUnchangedSource(t *testing.T) {
	j := newJobs(t)
	job, _ := thisMinute()
	for _, name := range []string{"by-hand", job, job} {
		if got := j.backUp(name, "--unchanged"); got.code != exitOK || j.told().Revision != 1 {
			t.Fatalf("%s: %+v", name, got)
		}
	}
	j.put(t)
	got := j.backUp(job, "--unchanged")
	if got.code != exitError || !strings.Contains(got.err, " in file://"+j.store+", but the source has changed since this backup: it was at revision 1 and is now at 2. "+
		"Stop its clients, or wait until its leases have expired, and repeat") {
		t.Errorf("%+v", got)
	}
	j.emptyResult()
	if got := j.backUp("by-hand", "--unchanged"); got.code != exitOK || j.told().Revision != 2 {
		t.Errorf("%+v", got)
	}
}

// TestBackupOfChangingSource checks that a write during the backup makes --unchanged fail, and that the backup is kept.
func TestBackupOfChangingSource(t *testing.T) {
	j := newJobs(t)
	writing, stop := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() {
		var err error
		for err == nil && writing.Err() == nil {
			err = j.post("/v3/kv/put", `{"key":"aw==","value":"dg=="}`)
		}
		written <- err
	}()
	got := j.backUp("by-hand", "--unchanged")
	stop()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if got.code != exitError || !strings.Contains(got.err, "the source has changed since this backup") || len(j.backups()) != 1 {
		t.Errorf("%+v: %v", got, j.backups())
	}
	j.emptyResult()
}
