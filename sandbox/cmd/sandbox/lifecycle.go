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
		Short: "Bring the sandbox up, or repair it, and wait until it works",
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
	cmd.Flags().IntVar(&nodes, "nodes", 0, "how many nodes, 1 to 3 (default: as many as it has, or 1)")
	return cmd
}

func down(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the sandbox and remove all it has",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			return s.Progress.Do("ending sandbox "+s.Name, "sandbox "+s.Name+" is gone", 0, func() error {
				return s.Down(cmd.Context())
			})
		},
	}
}

func build() *cobra.Command {
	var tools string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build every program of the sandbox that is not in the cache, and install what is missing of Debian",
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
		"directory in which to link kubectl, etcdctl, etcdutl and, as etcd-VERSION, each etcd")
	return cmd
}

func node(open opener) *cobra.Command {
	parent := &cobra.Command{Use: "node", Short: "Let one node fail, or come back", Args: cobra.NoArgs}
	stop := &cobra.Command{
		Use:   "stop NAME",
		Short: "End a node as a loss of power would",
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
		Short: "Boot a stopped node, and wait until it works",
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
