package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/internal/etcdversion"
)

// externalEtcdFlags are the flags of commands that do not start etcd themselves, for example because etcd runs in a
// different container of the pod. One command prepares the data, and a second command continues once etcd is running.
type externalEtcdFlags struct {
	prepare, prepared bool
	version           string
	etcd              etcdversion.Version
}

// add adds the flags to a command. verb describes how the command prepares the directory.
func (f *externalEtcdFlags) add(c *cobra.Command, verb, config string) {
	c.Flags().BoolVar(&f.prepare, "prepare", false,
		"only "+verb+" --dir; then start etcd separately, in that directory, with --config-file="+config)
	c.Flags().BoolVar(&f.prepared, "prepared", false, "continue after --prepare, with the separately started etcd")
	c.Flags().StringVar(&f.version, "etcd-version", "", "version of the separately started etcd")
}

// is reports whether etcd is started externally.
func (f *externalEtcdFlags) is() bool { return f.prepare || f.prepared }

func (f *externalEtcdFlags) check(dir string) (err error) {
	switch {
	case !f.is() && f.version != "":
		return usageError{errors.New("--etcd-version requires --prepare or --prepared")}
	case !f.is():
		return nil
	case f.prepare && f.prepared:
		return usageError{errors.New("--prepare and --prepared cannot be combined: use --prepare, start etcd, then " +
			"use --prepared")}
	case dir == "" || f.version == "":
		return usageError{errors.New("--prepare and --prepared require --dir and --etcd-version")}
	}
	if f.etcd, err = etcdversion.Parse(f.version); err != nil {
		return usageError{fmt.Errorf("--etcd-version: %w", err)}
	}
	return nil
}
