//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/sandbox"
)

func load(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE=PROGRAM…",
		Short: "Build an image that runs a static program, and load it on every node",
		Long: "Load builds an image that runs a static program, and loads it on every node. IMAGE is the full name, " +
			"with a registry and a tag. Pods use docker.io/library/NAME for a name without a registry.",
		Example: "  sandbox load quorate.dev/quorate:dev=bin/quorate",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			for _, arg := range args {
				reference, program, err := parseImage(arg)
				if err != nil {
					return err
				}
				err = s.Progress.Do("loading "+reference, "loaded on every node: "+reference, 0, func() error {
					return s.Load(cmd.Context(), reference, program)
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func image() *cobra.Command {
	return &cobra.Command{
		Use:     "image IMAGE=PROGRAM FILE",
		Short:   "Build an image that runs a static program, and write it to an archive for any container runtime",
		Example: "  sandbox image quorate.dev/quorate:dev=bin/quorate quorate.tar",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			reference, program, err := parseImage(args[0])
			if err != nil {
				return err
			}
			made, err := sandbox.ProgramImage(reference, program)
			if err != nil {
				return err
			}
			return made.Write(args[1])
		},
	}
}

func parseImage(arg string) (reference, program string, err error) {
	reference, program, found := strings.Cut(arg, "=")
	if !found {
		return "", "", fmt.Errorf("expected IMAGE=PROGRAM, not %q", arg)
	}
	return reference, program, nil
}
