package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/visible"
)

// jobFlags are for a backup that a Kubernetes Job takes.
type jobFlags struct {
	name    jobName
	results []string
}

func (f *jobFlags) add(c *cobra.Command) {
	c.Flags().Var(&f.name, "job",
		"name of the Kubernetes Job that runs this: if a CronJob has named it, as CRONJOB-MINUTES, the backup is for "+
			"that minute, and one of it that is there already is as good; with --member and a store")
	c.Flags().StringArrayVar(&f.results, "result", nil,
		"file that the outcome is written to, as a line of JSON, such as /dev/termination-log; with a store; "+
			"repeatable")
}

// jobName is never empty where it is given: a variable that is not set must not turn off what it was
// to turn on.
type jobName string

func (n *jobName) String() string { return string(*n) }
func (n *jobName) Type() string   { return "string" }

func (n *jobName) Set(name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return errors.New("want the name of a Job")
	}
	*n = jobName(name)
	return nil
}

// check refuses what has no meaning for such a backup: a slot is a name in a store, and without
// --member the time is that of the API server, which has nothing to do with the Job's name.
func (f *jobFlags) check(to string, named bool) error {
	inStore := store.IsLocation(to)
	switch {
	case f.name != "" && !(inStore && named):
		return usageError{errors.New("--job goes with --member, and with the URL of a store as --to")}
	case len(f.results) > 0 && !inStore:
		return usageError{errors.New("--result goes with the URL of a store as --to")}
	}
	for _, name := range f.results {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return usageError{fmt.Errorf("--result %s: it is a directory", name)}
		}
		if err := existingDir("result", filepath.Dir(name)); err != nil {
			return err
		}
	}
	return nil
}

// slot is the time that the backup is for, and whether it has to be taken now.
func (f *jobFlags) slot(now time.Time) (slot time.Time, fresh bool) {
	if slot, is := backup.SlotOfJob(string(f.name), now); is {
		return slot, false
	}
	return now, true
}

// begin empties the files for the result: what another backup has left there is not this one's.
func (f *jobFlags) begin() {
	for _, name := range f.results {
		_ = os.Truncate(name, 0) // no file, or a device: then nothing is left there
	}
}

// end writes the result. The backup is stored, and counts as well without one.
func (f *jobFlags) end(stderr io.Writer, m store.Manifest) {
	if len(f.results) == 0 {
		return
	}
	line, err := resultOf(m).Encode()
	for _, name := range f.results {
		if err == nil {
			err = overwrite(name, line)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "quorate: %s: the backup is stored, and --result is not written: %s\n", m.Backup().Cluster,
			visible.Line(err.Error()))
	}
}

func resultOf(m store.Manifest) result.Result {
	return result.Result{
		Slot: m.Slot, Data: m.Data, ClusterID: m.ClusterID, Revision: m.Snapshot.Revision,
		Bytes: m.Snapshot.Bytes, SHA256: m.Snapshot.SHA256, StartedAt: m.StartedAt, FinishedAt: m.FinishedAt,
		Suspect: m.Snapshot.Corrupt(), Unproven: m.Snapshot.Unproven,
	}
}

// overwrite writes to a file or a device that is there, or else to a new file. What is there may be
// mounted, where nothing may be created.
func overwrite(name string, content []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
