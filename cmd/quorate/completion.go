package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/backup/store"
)

// timeToSuggest is the maximum time for which a shell waits for suggestions.
const timeToSuggest = 2 * time.Second

// completes adds completion of cluster names for a command's first argument, and of namespaces for --namespace. If an
// error occurs, completion suggests and prints nothing.
func (f *kubeFlags) completes(c *cobra.Command) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f.suggested(c.Context(), begun), cobra.ShellCompDirectiveNoFileComp
	}
	f.completesNamespaces(c)
}

// completesNamespaces adds completion of --namespace, if the command has that flag.
func (f *kubeFlags) completesNamespaces(c *cobra.Command) {
	const flag = "namespace"
	if c.Flags().Lookup(flag) == nil {
		return
	}
	suggest := func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		var found []string
		for _, name := range f.clusterNames(c.Context(), "") {
			if strings.HasPrefix(name.Namespace, begun) {
				found = append(found, name.Namespace)
			}
		}
		slices.Sort(found)
		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
	if err := c.RegisterFlagCompletionFunc(flag, suggest); err != nil {
		panic(err) // the flag does not exist, or already has a completion
	}
}

// suggested returns the clusters that start with begun. It returns names if there is exactly one --namespace, and
// NAMESPACE/NAME otherwise.
func (f *kubeFlags) suggested(ctx context.Context, begun string) []string {
	given := slices.Compact(slices.Sorted(slices.Values(f.namespaces))) // cobra sets flags repeatedly here
	namespace, short := "", len(given) == 1
	if short {
		namespace = given[0]
	}
	var found []string
	for _, name := range f.clusterNames(ctx, namespace) {
		text := name.Namespace + "/" + name.Name
		if short {
			text = name.Name
		}
		among := len(given) == 0 || slices.Contains(given, name.Namespace)
		if among && strings.HasPrefix(text, begun) {
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return found
}

// clusterNames returns the names of the clusters that can be listed in time, omitting names that are unsafe in a shell.
func (f *kubeFlags) clusterNames(ctx context.Context, namespace string) []types.NamespacedName {
	ctx, cancel := context.WithTimeout(ctx, timeToSuggest)
	defer cancel()
	f.errors = func() io.Writer { return io.Discard }
	if f.places != nil { // use only the first of several contexts
		if f.places.fleet != "" {
			return nil
		}
		f.context = strings.Join(f.places.contexts[:min(1, len(f.places.contexts))], "")
	}
	if f.impersonates == nil {
		f.impersonates = func() bool { return false }
	}
	client, err := f.client()
	if err != nil {
		return nil
	}
	names, err := client.ClusterNames(ctx, namespace)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(name types.NamespacedName) bool {
		return !store.IsName(name.Namespace) || !store.IsName(name.Name)
	})
}

// completesChoice adds completion for a flag that has a fixed set of choices.
func completesChoice(c *cobra.Command, flag string, choices []string) {
	if err := c.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist, or already has a completion
	}
}
