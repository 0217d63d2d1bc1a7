package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// emptyResult checks that the last backup did not write a result.
func (j jobs) emptyResult() {
	j.Helper()
	if text, err := os.ReadFile(j.result); err != nil && !errors.Is(err, fs.ErrNotExist) || len(text) > 0 {
		j.Errorf("result %q, %v", text, err)
	}
}

// TestBackupRequiresClusterID checks that backup does not store anything or write a result if the members' cluster ID
// differs from --cluster-id, even if the Job has already stored a backup.
func TestBackupRequiresClusterID(t *testing.T) {
	t.Parallel()
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

// compare compares the cluster with the last backup.
func (j jobs) compare(more ...string) ran {
	var out, stderr bytes.Buffer
	args := slices.Concat([]string{"backups", "compare", "ns/a", "--result", j.result}, j.flags(j.url), more)
	code := execute(j.Context(), args, streams{out: &out, err: &stderr})
	return ran{code: code, out: out.String(), err: strings.Join(strings.Fields(stderr.String()), " ")}
}

// TestCompareDetectsChangedSource checks that a cluster, even a new cluster, counts as unchanged
// until its revision rises.
func TestCompareDetectsChangedSource(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	if got := j.backUp("by-hand"); got.code != exitOK || j.told().Revision != 1 {
		t.Fatalf("%+v", got)
	}
	for range 2 {
		if got := j.compare(); got.code != exitOK || !strings.Contains(got.out, "ns/a  is unchanged since ") || !strings.Contains(got.out, ": revision 1\n") {
			t.Errorf("%+v", got)
		}
	}
	j.put(t)
	if got := j.compare(); got.code != exitError || !strings.Contains(got.err, "the cluster has changed since this backup: it was at revision 1 and is now at 2. "+
		"Stop its clients, or wait until its leases have expired. Then take another backup (a restore Job does so by itself)") {
		t.Errorf("%+v", got)
	}
	if got := j.backUp("by-hand"); got.code != exitOK || j.told().Revision != 2 {
		t.Fatalf("%+v", got)
	}
	if got := j.compare(); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	if got := j.compare("--result", "/nowhere"); got.code != exitInvalid || !strings.Contains(got.err, "--result: open /nowhere") {
		t.Errorf("%+v", got)
	}
}
