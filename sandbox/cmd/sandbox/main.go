//go:build linux

// Command sandbox runs real Kubernetes clusters on this machine, without Docker, using programs that it builds from
// source.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/sandbox"
	"quorate.dev/quorate/sandbox/progress"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "sandbox: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "sandbox",
		Short:         "Run a real Kubernetes cluster on this machine, without Docker",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	var name string
	root.PersistentFlags().StringVar(&name, "name", sandbox.DefaultName,
		"name of the sandbox; several can run in parallel")
	open := func() (*sandbox.Sandbox, error) {
		s, err := sandbox.Named(name)
		if err == nil {
			s.Progress = progress.To(os.Stderr)
		}
		return s, err
	}
	root.AddCommand(up(open), down(open), status(open), execute(open), kubeconfig(open), load(open), image(),
		node(open), standIn(open), build())
	root.AddCommand(inside()...)
	return root
}

// opener returns the sandbox selected by the flags.
type opener func() (*sandbox.Sandbox, error)
