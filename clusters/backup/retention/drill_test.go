package retention_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/retention"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
)

// TestNothingIsDeletedAfterFailedDrill checks that pruning does not rely on a backup whose restore drill failed, even
// if that backup is verified again, but does once a drill of it succeeds.
func TestNothingIsDeletedAfterFailedDrill(t *testing.T) {
	now := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	bucket, err := store.Location{Directory: t.TempDir()}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	begin := func(m store.Manifest) store.Verification {
		v, err := store.BeginVerification(t.Context(), bucket, m)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var all []store.Manifest
	for age := range 3 {
		m := store.Manifest{
			Format: store.Format, Namespace: "ns", Cluster: "a", ClusterID: "00000000000000aa", Slot: now.AddDate(0, 0, -age-1),
			Bytes: 3, SHA256: strings.Repeat("ab", 32),
			Snapshot: store.Snapshot{Bytes: 3, SHA256: strings.Repeat("cd", 32), Facts: snapshot.Facts{Revision: 7}},
		}
		m.Data = m.NewDataName()
		if err := bucket.Create(t.Context(), m.DataPath(), strings.NewReader("abc")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Commit(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
		if err := begin(m).Record(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	require := func(what string, byVerified bool, want int, restsOn store.Manifest) {
		t.Helper()
		listing, err := store.List(t.Context(), bucket, store.Cluster{Namespace: "ns", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		plan := retention.Prune(listing, retention.Policy{Last: 1, ByVerified: byVerified}, now)
		if len(plan.Delete) != want || want == 0 && plan.Why == "" || want > 0 && !plan.RestsOn.Slot.Equal(restsOn.Slot) {
			t.Errorf("%s, by verified %t: %+v", what, byVerified, plan)
		}
	}
	require("before", false, 2, all[0])
	if err := begin(all[0]).RecordDifference(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	if err := begin(all[0]).Record(t.Context(), bucket); !errors.Is(err, store.ErrDiffered) {
		t.Errorf("verified again: %v", err)
	}
	require("a drill failed", false, 0, all[0])
	require("a drill failed", true, 1, all[1])
	if err := (store.Drill{Verification: begin(all[0])}).Record(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	require("a drill succeeded", false, 2, all[0])
}
