package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/backup/datadir"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// suits returns an error if a snapshot of the given size does not suit the etcd version or the quota in the flags.
func (f *restoreFlags) suits(std streams, facts snapshot.Facts, bytes int64) error {
	if f.etcd != "" {
		suits, of, err := facts.Suits(f.version)
		switch {
		case err != nil:
			return blockedError{err}
		case !suits:
			return blockedError{fmt.Errorf("etcd %s must not be started with this backup: the data is from etcd %s, "+
				"and other versions could misread it; use etcd %s or %s "+
				"(--etcd-version, or spec.version in the declaration)", f.version, of, of, of.Next(1))}
		case facts.ClusterVersion == "" && facts.StorageVersion == "":
			fmt.Fprintf(std.err, "quorate: the backup does not record its etcd version: make sure that this version "+
				"is %s or the previous minor version\n", f.version.MajorMinor())
		}
	}
	if database := bytes - sha256.Size; f.quota > 0 && database >= f.quota {
		return blockedError{fmt.Errorf("the backup's database has %d bytes, but etcd's quota is %d: etcd would "+
			"reject writes (NOSPACE); raise the quota (--quota, or spec.etcd.quota in the declaration), or defragment "+
			"the backed-up etcd and take a new backup", database, f.quota)}
	}
	return nil
}

// tell prints what was restored, and how to start etcd with the restored data.
func (f *restoreFlags) tell(std streams, said restored) {
	fmt.Fprintf(std.out, "restored %s into %s\n", said.what, f.r.DataDir)
	tellStart(std, said.facts, f.r, said.revision)
	warnSuspect(std, said.facts.Corrupt())
	f.writeResult(std, said.result())
}

// tellStart prints the contents of a data directory created from a snapshot, and how to start etcd with it. revision is
// the revision at which etcd will start.
func tellStart(std streams, facts snapshot.Facts, r snapshot.Restoration, revision int64) {
	minor := printable.Line(strings.TrimSuffix(facts.ClusterVersion, ".0"))
	fmt.Fprintf(std.out, "it holds revision %d; new writes get revisions after %d\n", facts.Revision, revision)
	fmt.Fprintf(std.out, "start etcd %s, or the next minor version, as the user who owns the directory, with your "+
		"listen, client and TLS flags and\n", cmp.Or(minor, "of the version that was backed up"))
	for _, flag := range []struct{ name, value string }{
		{"name", r.Name}, {"data-dir", r.DataDir}, {"initial-advertise-peer-urls", r.PeerURL},
		{"initial-cluster", r.InitialCluster}, {"initial-cluster-token", r.Token},
	} {
		if flag.value == "" {
			continue
		}
		fmt.Fprintf(std.out, "  --%s=%s\n", flag.name, printable.ShellWord(flag.value))
	}
	if facts.Auth {
		fmt.Fprintln(std.out, "authentication is enabled, with the users and passwords from the time of the backup")
	}
	if len(facts.Alarms) > 0 {
		fmt.Fprintf(std.out, "alarms not restored: %s\n", printable.Line(decide.Enumerate(facts.Alarms)))
	}
}

// tellAgain prints what the same command line has already restored.
func (f *restoreFlags) tellAgain(std streams, of string, told result.Restored) {
	fmt.Fprintf(std.out, "%s was restored into %s by the same command line at %s and is left unchanged\n",
		datadir.BackupName(of, told), f.r.DataDir, told.FinishedAt.Format(time.RFC3339))
	facts := snapshot.Facts{Revision: told.Revision, ClusterVersion: told.ClusterVersion}
	tellStart(std, facts, f.r, told.NewRevision)
	warnSuspect(std, told.Suspect)
	f.writeResult(std, told)
}

func warnSuspect(std streams, suspect bool) {
	if suspect {
		fmt.Fprintln(std.err, "quorate: members held different data when the backup was taken: check whether the "+
			"restored data is right")
	}
}

// writeResult writes the result. If that fails, the data is nevertheless restored.
func (f *restoreFlags) writeResult(std streams, told result.Restored) {
	if err := f.results.write(told.Encode); err != nil {
		fmt.Fprintf(std.err, "quorate: %s is restored, but --result was not written: %s\n", f.r.DataDir,
			printable.Line(err.Error()))
	}
}
