//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/sandbox"
	"quorate.dev/quorate/sandbox/machine"
)

func status(open opener) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the running components",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("unknown output format %q: use json, or omit the flag to print text", output)
			}
			s, err := open()
			if err != nil {
				return err
			}
			status, err := s.Status(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(status)
			}
			return printStatus(cmd.OutOrStdout(), status)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json (default: text)")
	return cmd
}

func printStatus(out io.Writer, status sandbox.Status) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "sandbox\t%s\n", status.Name)
	fmt.Fprintf(table, "up\t%s\n", yes(status.Up, status.Problem))
	fmt.Fprintf(table, "kubeconfig\t%s\n", status.Kubeconfig)
	fmt.Fprintf(table, "logs\t%s\n", status.Logs)
	fmt.Fprintf(table, "memory\t%d MiB\n", status.Memory>>20)
	for _, name := range slices.Sorted(maps.Keys(status.Versions)) {
		fmt.Fprintf(table, "%s\t%s\n", name, status.Versions[name])
	}
	fmt.Fprintf(table, "images\t%s\n", strings.Join(status.Images, " "))
	for _, m := range status.Machines {
		fmt.Fprintf(table, "\n%s\tready: %s\n", m.Name, yes(m.Ready, m.Reason))
		for _, p := range m.Processes {
			fmt.Fprintf(table, "  %s\t%s\n", p.Name, describe(p))
		}
	}
	return table.Flush()
}

func yes(good bool, otherwise string) string {
	switch {
	case good:
		return "yes"
	case otherwise == "":
		return "no"
	default:
		return "no: " + otherwise
	}
}

func describe(p machine.ProcessStatus) string {
	text := "runs"
	switch {
	case p.Done:
		text = "done"
	case p.Waiting != "":
		text = "waiting for " + p.Waiting
	case p.PID == 0:
		text = "ended"
	}
	if p.Restarts > 0 {
		text += fmt.Sprintf(", restarted %d times, last: %s", p.Restarts, p.LastExit)
	}
	return text
}
