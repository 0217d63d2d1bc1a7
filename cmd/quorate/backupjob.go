package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
)

// jobFlags are the flags for a backup taken by a Kubernetes Job.
type jobFlags struct {
	name    jobName
	results resultFiles
}

func (f *jobFlags) add(c *cobra.Command) {
	c.Flags().Var(&f.name, "job",
		"name of the Kubernetes Job that runs this command; requires --member and a store. For a Job created "+
			"by a CronJob (CRONJOB-MINUTES), the backup is for that minute; if one already exists, it is used instead")
	f.results.add(c)
}

// jobName is the value of --job. It rejects an empty value, so that an unset variable does not silently disable the
// flag.
type jobName string

func (n *jobName) String() string { return string(*n) }
func (n *jobName) Type() string   { return "string" }

func (n *jobName) Set(name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return errors.New("expected a Job name")
	}
	*n = jobName(name)
	return nil
}

// check rejects --job unless --member and a store are also set. Only backups in a store are named after a slot. Without
// --member, the time comes from the API server and is unrelated to the Job's name.
func (f *jobFlags) check(to string, named bool) error {
	if f.name != "" && !(store.IsLocation(to) && named) {
		return usageError{errors.New("--job requires --member, and a store URL as --to")}
	}
	return f.results.check("to", to)
}

// slot returns the slot of the backup, and whether a new backup must be taken.
func (f *jobFlags) slot(now time.Time) (slot time.Time, fresh bool) {
	if slot, is := backup.SlotOfJob(string(f.name), now); is {
		return slot, false
	}
	return now, true
}

// begin empties the result files.
func (f *jobFlags) begin() { f.results.begin() }

// end writes the result. If that fails, the backup is nevertheless stored and valid.
func (f *jobFlags) end(stderr io.Writer, m store.Manifest) {
	if err := f.results.write(resultOf(m).Encode); err != nil {
		fmt.Fprintf(stderr, "quorate: %s: the backup is stored, but --result was not written: %s\n", m.Backup().Cluster,
			printable.Line(err.Error()))
	}
}

func resultOf(m store.Manifest) result.Result {
	return result.Result{
		Slot: m.Slot, Data: m.Data, ClusterID: m.ClusterID, Revision: m.Snapshot.Revision,
		Bytes: m.Snapshot.Bytes, SHA256: m.Snapshot.SHA256, StartedAt: m.StartedAt, FinishedAt: m.FinishedAt,
		Suspect: m.Snapshot.Corrupt(), Unproven: m.Snapshot.Unproven,
	}
}
