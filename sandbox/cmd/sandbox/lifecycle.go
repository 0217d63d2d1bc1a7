//go:build linux

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/sandbox"
	"quorate.dev/quorate/sandbox/progress"
)

func up(open opener) *cobra.Command {
	var nodes int
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start or repair the sandbox, and wait until it is ready",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			began := time.Now()
			if err := s.Up(cmd.Context(), nodes); err != nil {
				return err
			}
			s.Progress.Say(fmt.Sprintf("sandbox %s is up (%s); KUBECONFIG=%s", s.Name,
				progress.Round(time.Since(began)), s.Kubeconfig()))
			return nil
		},
	}
	cmd.Flags().IntVar(&nodes, "nodes", 0, "number of nodes, 1 to 3 (default: the current number, or 1)")
	return cmd
}

func down(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox and remove all its data",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			return s.Progress.Do("removing sandbox "+s.Name, "sandbox "+s.Name+" is removed", 0, func() error {
				return s.Down(cmd.Context())
			})
		},
	}
}

func build() *cobra.Command {
	var tools string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the sandbox programs that are not in the cache, and install missing Debian packages",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			programs, err := sandbox.Build(cmd.Context(), progress.To(os.Stderr))
			if err != nil || tools == "" {
				return err
			}
			return programs.LinkTools(tools)
		},
	}
	cmd.Flags().StringVar(&tools, "tools", "",
		"directory in which to create links to kubectl, etcdctl, etcdutl and each etcd version (as etcd-VERSION)")
	return cmd
}

func node(open opener) *cobra.Command {
	parent := &cobra.Command{Use: "node", Short: "Stop or start a node", Args: cobra.NoArgs}
	stop := &cobra.Command{
		Use:   "stop NAME",
		Short: "Stop a node abruptly, as in a power failure",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			return s.Progress.Do("stopping "+args[0], args[0]+" is stopped", 0, func() error {
				return s.StopNode(cmd.Context(), args[0])
			})
		},
	}
	start := &cobra.Command{
		Use:   "start NAME",
		Short: "Boot a stopped node, and wait until it is ready",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			return s.StartNode(cmd.Context(), args[0])
		},
	}
	parent.AddCommand(stop, start)
	return parent
}
