package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/quorate/clusters/v1alpha1/crd"
	"quorate.dev/quorate/deploy"
	"quorate.dev/quorate/deploy/install"
)

// installFlags specify what to install in the Kubernetes cluster.
type installFlags struct {
	kubeFlags
	mode      string
	options   deploy.Options
	printOnly bool
	// config is the name of the configuration file of the runs. Without it, source, branch and path are written to a
	// file.
	config, source, branch, path string
}

func newInstall(std streams) *cobra.Command {
	f := &installFlags{}
	c := &cobra.Command{
		Use:   "install [flags] [-- FLAGS OF run]",
		Short: "Install the EtcdCluster CustomResourceDefinition and, with --mode, Quorate itself",
		Long: `Install applies the EtcdCluster CustomResourceDefinition. With --mode, it also applies the manifests of
that mode in the directory deploy/: the namespace ` + deploy.Namespace + `, a service account with the rights that runs
need, and a CronJob, a CronJob of Indexed Jobs, or a Deployment. Objects installed by another mode are
deleted; etcd clusters are not changed. The installed runs take their settings from the --config file, which is
checked and stored in a ConfigMap. If you set --source instead, Quorate generates a file with that source. Put flags
that are not settings (see quorate run --help) after --.`,
		Example: `  # Only the CustomResourceDefinition: a pipeline runs Quorate, or you run it manually.
  quorate install

  # Two loops, for clusters declared in a private repository. Create the Secret quorate-git first.
  quorate install --mode loop --image registry.example.com/quorate:1.0 --private \
    --source https://git.example.com/fleet.git --path clusters

  # The same with a file that contains the source and all other settings, as printed by quorate config.
  quorate install --mode loop --image registry.example.com/quorate:1.0 --config quorate.yaml

  # Print the same objects, to review them or to commit them for Flux or Argo CD.
  quorate install --mode loop --image registry.example.com/quorate:1.0 \
    --config quorate.yaml --print > install.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			objects, err := f.render(c, args)
			if err != nil {
				return err
			}
			if f.printOnly {
				_, err := fmt.Fprint(std.out, strings.Join(objects, "---\n"))
				return err
			}
			return f.install(c.Context(), std, objects)
		},
	}
	f.addFlags(c)
	return c
}

func (f *installFlags) addFlags(c *cobra.Command) {
	f.add(c)
	flags := c.Flags()
	flags.StringVar(&f.mode, "mode", "", "how Quorate runs: cronjob, indexed-job or loop (default: do not install "+
		"Quorate itself)")
	flags.StringVar(&f.options.Image, "image", "", "Quorate image that the nodes have or can pull")
	flags.StringVar(&f.config, "config", "", "YAML file with the settings of the runs and their sources, as for "+
		"quorate run; replaces --source, --branch and --path")
	flags.StringVar(&f.source, "source", "", "URL of the git repository, or \"cluster\", as in quorate run")
	flags.StringVar(&f.branch, "branch", "", "branch to read (default: the branch that HEAD points to)")
	flags.StringVar(&f.path, "path", "", "directory in the repository (default: its root)")
	flags.BoolVar(&f.options.Private, "private", false,
		"mount the source credentials from the Secret quorate-git at "+deploy.Credentials)
	flags.BoolVar(&f.options.NetworkPolicy, "network-policy", false,
		"restrict what Quorate's pods can reach with a NetworkPolicy")
	flags.IntVar(&f.options.Shards, "shards", 4, "number of pods of an Indexed Job")
	flags.BoolVar(&f.printOnly, "print", false, "print the objects without applying them")
}

// render returns the objects to install, as YAML.
func (f *installFlags) render(c *cobra.Command, args []string) ([]string, error) {
	if f.mode == "" {
		if err := f.checkNothingRuns(c.Flags(), args); err != nil {
			return nil, err
		}
		return []string{string(crd.YAML)}, nil
	}
	f.options.Mode, f.options.Args = deploy.Mode(f.mode), args
	if err := f.check(c); err != nil {
		return nil, err
	}
	return deploy.Render(f.options)
}

// checkNothingRuns rejects flags and arguments for runs if --mode is not set.
func (f *installFlags) checkNothingRuns(flags *pflag.FlagSet, args []string) error {
	var problems error
	for _, name := range []string{
		"image", "config", "source", "branch", "path", "private", "network-policy", "shards",
	} {
		if flags.Changed(name) {
			problems = errors.Join(problems,
				usageError{fmt.Errorf("--%s requires --mode: without --mode, Quorate itself is not installed", name)})
		}
	}
	if len(args) > 0 {
		problems = errors.Join(problems,
			usageError{fmt.Errorf("%q requires --mode: without --mode, Quorate itself is not installed", args)})
	}
	return problems
}

// mostShards is the maximum parallelism of an Indexed Job in Kubernetes.
const mostShards = 100_000

// check returns all problems with the flags.
func (f *installFlags) check(c *cobra.Command) error {
	var modes []string
	for _, mode := range deploy.Modes() {
		modes = append(modes, string(mode))
	}
	problems := oneOf("mode", f.mode, modes...)
	wrong := func(format string, args ...any) {
		problems = errors.Join(problems, usageError{fmt.Errorf(format, args...)})
	}
	if f.options.Image == "" || strings.ContainsAny(f.options.Image, " \t\n") {
		wrong("--image %q: expected a Quorate image that the nodes can pull, such as registry.example.com/quorate:1.0",
			f.options.Image)
	}
	if f.options.Shards < 1 || c.Flags().Changed("shards") && f.options.Mode != deploy.IndexedJob {
		wrong("--shards %d: must be 1 or more, with --mode %s", f.options.Shards, deploy.IndexedJob)
	}
	if f.options.Shards > mostShards {
		wrong("--shards %d: Kubernetes allows up to %d pods in an Indexed Job", f.options.Shards, mostShards)
	}
	if c.ArgsLenAtDash() != 0 && len(f.options.Args) > 0 {
		wrong("%q: put flags for quorate run after --", f.options.Args[0])
	}
	return errors.Join(problems, f.checkSettings(c.Flags().Changed))
}

// install applies the objects. With --mode, it also deletes the objects of other modes.
func (f *installFlags) install(ctx context.Context, std streams, objects []string) error {
	client, err := f.client()
	if err != nil {
		return err
	}
	if f.mode == "" {
		if err := client.InstallCRD(ctx, crd.YAML); err != nil {
			return err
		}
		_, err = fmt.Fprintf(std.out, "EtcdCluster is installed on %s\n", client.Host())
		return err
	}
	err = install.Installer{Client: client, Out: std.out, Err: std.err}.Install(ctx, objects)
	if _, owned := errors.AsType[*install.OwnedError](err); owned {
		return blockedError{err}
	}
	return err
}
