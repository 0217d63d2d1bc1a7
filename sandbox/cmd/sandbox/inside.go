//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/sandbox/cluster"
	"quorate.dev/quorate/sandbox/gitserver"
	images "quorate.dev/quorate/sandbox/image"
	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
	"quorate.dev/quorate/sandbox/provisioner"
)

// inside returns the hidden commands that the sandbox's machines and the tests run.
func inside() []*cobra.Command {
	all := []*cobra.Command{runMachine(), applyObjects(), importImages(), provision(), runFleet(), serveGit()}
	for _, cmd := range all {
		cmd.Hidden = true
	}
	return all
}

func runMachine() *cobra.Command {
	return &cobra.Command{
		Use:  machine.Command + " DIR",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return machine.Run(args[0]) },
	}
}

func applyObjects() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:  "apply-objects FILE",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("open the objects: %w", err)
			}
			defer objects.Close()
			c, err := cluster.New(kubeconfig)
			if err != nil {
				return err
			}
			return c.Apply(cmd.Context(), objects)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of an administrator")
	return cmd
}

func importImages() *cobra.Command {
	importer := images.Importer{Socket: layout.ContainerdSocket, Marks: layout.ImportedImages}
	cmd := &cobra.Command{
		Use:  "import-images PATH…",
		RunE: func(cmd *cobra.Command, args []string) error { return importer.Import(cmd.Context(), args...) },
	}
	cmd.Flags().StringVar(&importer.Ctr, "ctr", "", "containerd's command-line client")
	return cmd
}

// serveGit returns the command that serves the repositories in a directory until the process that started it ends. It
// prints the URL that pods use to reach the repositories.
func serveGit() *cobra.Command {
	return &cobra.Command{
		Use:  "serve-git DIR",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin())
				stop()
			}()
			return gitserver.Serve(ctx, args[0], func(port int) {
				fmt.Fprintf(cmd.OutOrStdout(), "http://%s:%d\n", layout.ControlPlane, port)
			})
		},
	}
}

func provision() *cobra.Command {
	var kubeconfig, node, volumes string
	cmd := &cobra.Command{
		Use:  "provisioner",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return provisioner.Run(cmd.Context(), kubeconfig, node, volumes)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the provisioner")
	cmd.Flags().StringVar(&node, "node", "", "node whose volumes to create")
	cmd.Flags().StringVar(&volumes, "volumes", "", "directory to create the volumes in")
	return cmd
}
