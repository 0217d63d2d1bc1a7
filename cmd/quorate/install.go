package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/v1alpha1/crd"
)

func newInstall(std streams) *cobra.Command {
	var f kubeFlags
	var printOnly bool
	c := &cobra.Command{
		Use:   "install",
		Short: "Install the CustomResourceDefinition of EtcdCluster",
		Example: `  quorate install
  quorate install --print > crd.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if printOnly {
				_, err := std.out.Write(crd.YAML)
				return err
			}
			client, err := f.client()
			if err != nil {
				return err
			}
			if err := client.InstallCRD(c.Context(), crd.YAML); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "EtcdCluster is installed on %s\n", client.Host())
			return err
		},
	}
	f.add(c)
	c.Flags().BoolVar(&printOnly, "print", false, "print it instead")
	return c
}
