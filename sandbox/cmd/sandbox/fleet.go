//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/sandbox/fleet"
	"quorate.dev/quorate/sandbox/layout"
)

func standIn(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "fleet",
		Short: "Simulate one large node and its etcd until interrupted; other nodes do not accept new pods",
		Args:  cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			return s.Exec([]string{self, runFleetCommand, "--kubeconfig=" + s.KubeconfigInside(),
				"--volumes=" + filepath.Join(s.Dir(), "fleet")})
		},
	}
}

const runFleetCommand = "run-fleet"

func runFleet() *cobra.Command {
	f := fleet.Fleet{Node: "fleet", Address: layout.ControlPlane}
	cmd := &cobra.Command{
		Use:  runFleetCommand,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.Run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig of an administrator")
	cmd.Flags().StringVar(&f.Volumes, "volumes", "", "directory for the volumes of pods")
	return cmd
}
