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

// resultFiles lists files to which the result is written, for readers that do not have access to the command's output.
type resultFiles []string

func (f *resultFiles) add(c *cobra.Command) {
	c.Flags().StringArrayVar((*[]string)(f), "result", nil,
		"file to write the result to, as a line of JSON, such as /dev/termination-log; requires a store; "+
			"repeatable")
}

// check rejects files that cannot be written, and locations that are not a store, because only backups in a store have
// a result. flag is the name of the flag that sets the location.
func (f resultFiles) check(flag, location string) error {
	if len(f) > 0 && !store.IsLocation(location) {
		return usageError{fmt.Errorf("--result requires the URL of a store as --%s", flag)}
	}
	return f.checkFiles()
}

// checkFiles rejects files that cannot be written.
func (f resultFiles) checkFiles() error {
	for _, name := range f {
		if err := writable("result", name); err != nil {
			return err
		}
	}
	return nil
}

// writable returns an error if a file cannot be written. flag is the name of the flag that sets the file name.
func writable(flag, name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return usageError{fmt.Errorf("--%s %s: this is a directory", flag, name)}
	}
	return existingDir(flag, filepath.Dir(name))
}

// begin truncates the files, so that they do not contain the result of an earlier command.
func (f resultFiles) begin() {
	for _, name := range f {
		_ = os.Truncate(name, 0) // if the file is missing or a device, there is nothing to remove
	}
}

// write writes the result.
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

// overwrite writes to an existing file or device, or creates a file. An existing file may be mounted into a directory
// in which files cannot be created.
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
