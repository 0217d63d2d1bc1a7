//go:build linux

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func execute(open opener) *cobra.Command {
	return &cobra.Command{
		Use:     "exec -- COMMAND…",
		Short:   "Run a command like a pod: in the sandbox's network, with its DNS",
		Example: "  sandbox exec -- kubectl get pods -A",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			return s.Exec(args)
		},
	}
}

func kubeconfig(open opener) *cobra.Command {
	var inside, content bool
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of a kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			path := s.Kubeconfig()
			if inside {
				path = s.KubeconfigInside()
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("read the kubeconfig of sandbox %s (is it up?): %w", s.Name, err)
			}
			if content {
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
	cmd.Flags().BoolVar(&inside, "inside", false, "print the kubeconfig for clients inside the sandbox's network")
	cmd.Flags().BoolVar(&content, "print", false, "print the content of the kubeconfig instead")
	return cmd
}
