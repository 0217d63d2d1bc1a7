package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/datadir"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// TestRecoverReportsSuspectData checks that a data inconsistency that etcd had detected is reported, even if only the
// log records it because the database is older than the log entry.
func TestRecoverReportsSuspectData(t *testing.T) {
	t.Parallel()
	for _, inDatabase := range []bool{true, false} {
		r := newRecoveries(t)
		before, err := os.ReadFile(snapshot.Database(r.left))
		if err != nil {
			t.Fatal(err)
		}
		url, etcd := r.start(r.left)
		alarm := `{"action":"ACTIVATE","alarm":"CORRUPT","memberID":"7"}`
		if status, said := post(t, url+"/v3/maintenance/alarm", alarm); status != http.StatusOK {
			t.Fatalf("%d %s", status, said)
		}
		_ = etcd.Process.Signal(os.Interrupt)
		_ = etcd.Wait()
		if !inDatabase {
			overwriteFile(t, snapshot.Database(r.left), string(before))
		}
		r.copied()
		if s, err := snapshot.SurvivorOf(r.dir()); err != nil || s.Facts.Corrupt() != inDatabase {
			t.Fatalf("%+v, %v", s, err)
		}
		got := r.recover(r.dir())
		if got.code != exitOK || !strings.Contains(got.err, "members held different data") {
			t.Errorf("in the database %t: %+v", inDatabase, got)
		}
		told, done, err := datadir.Recovery{Dir: r.dir(), Lost: r.id.ClusterID}.Find()
		if err != nil || !done || !told.Suspect {
			t.Errorf("in the database %t: %+v, %v", inDatabase, told, err)
		}
	}
}
