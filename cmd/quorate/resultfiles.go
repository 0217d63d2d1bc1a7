package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup/store"
)

// resultFiles are what the outcome is written to, for whoever cannot read what a command says.
type resultFiles []string

func (f *resultFiles) add(c *cobra.Command) {
	c.Flags().StringArrayVar((*[]string)(f), "result", nil,
		"file that the outcome is written to, as a line of JSON, such as /dev/termination-log; with a store; "+
			"repeatable")
}

// check refuses what cannot be written to, and a backup that is in no store, given as the value of a
// flag: there is no such outcome.
func (f resultFiles) check(flag, location string) error {
	if len(f) > 0 && !store.IsLocation(location) {
		return usageError{fmt.Errorf("--result goes with the URL of a store as --%s", flag)}
	}
	return f.checkFiles()
}

// checkFiles refuses what cannot be written to.
func (f resultFiles) checkFiles() error {
	for _, name := range f {
		if err := writable("result", name); err != nil {
			return err
		}
	}
	return nil
}

// writable refuses the name of a file, given as the value of a flag, that cannot be one.
func writable(flag, name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return usageError{fmt.Errorf("--%s %s: it is a directory", flag, name)}
	}
	return existingDir(flag, filepath.Dir(name))
}

// begin empties them: what another command has left there is not this one's.
func (f resultFiles) begin() {
	for _, name := range f {
		_ = os.Truncate(name, 0) // no file, or a device: then nothing is left there
	}
}

// write writes the outcome.
func (f resultFiles) write(encode func() ([]byte, error)) error {
	if len(f) == 0 {
		return nil
	}
	line, err := encode()
	for _, name := range f {
		if err == nil {
			err = overwrite(name, line)
		}
	}
	return err
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
