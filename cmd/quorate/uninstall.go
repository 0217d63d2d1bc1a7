package main

import (
	"github.com/spf13/cobra"

	"quorate.dev/quorate/deploy"
	"quorate.dev/quorate/deploy/install"
)

func newUninstall(std streams) *cobra.Command {
	var f kubeFlags
	var printOnly bool
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Uninstall Quorate and leave all etcd clusters unchanged",
		Long: `Uninstall deletes the objects that "quorate install --mode" has applied, in any mode: Quorate's workloads
and configuration and, once its pods have finished, its rights. Clusters keep running, but are no longer managed.
The CustomResourceDefinition is kept, because deleting it would delete every EtcdCluster. Also kept are
the namespace ` + deploy.Namespace + `, the other objects in it, objects that belong to a Helm release, and
a ClusterRole and a ClusterRoleBinding that something else uses, such as Quorate in another namespace.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := f.client()
			if err != nil {
				return err
			}
			installer := install.Installer{Client: client, Out: std.out, Err: std.err}
			if printOnly {
				return installer.PrintInstalled(c.Context())
			}
			return installer.Uninstall(c.Context())
		},
	}
	f.add(c)
	c.Flags().BoolVar(&printOnly, "print", false, "print what would be deleted, without deleting it")
	return c
}
