package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/shard"
)

// The pods of an Indexed Job have these environment variables. Kubernetes sets the index, and the manifest sets the
// number of pods.
const (
	indexVariable       = "JOB_COMPLETION_INDEX"
	completionsVariable = "JOB_COMPLETIONS"
)

// part is a flag for the shard of a run.
type part shard.Shard

// Set implements pflag.Value.
func (p *part) Set(text string) error {
	s, err := shard.Parse(text)
	*p = part(s)
	return err
}

// String implements pflag.Value.
func (p *part) String() string { return shard.Shard(*p).String() }

// Type implements pflag.Value.
func (p *part) Type() string { return "i/n" }

func (f *liveFlags) addShard(c *cobra.Command) {
	f.part = &part{}
	c.Flags().Var(f.part, "shard", "process only one of n parts of the clusters: i/n, where part numbers i start at "+
		"0; other runs must process the other parts (default: $"+indexVariable+"/$"+completionsVariable+
		", if both are set)")
}

// shard returns the shard specified by the flag or the environment.
func (f *liveFlags) shard() (shard.Shard, error) {
	if f.part == nil {
		return shard.Shard{}, nil
	}
	index, of := os.Getenv(indexVariable), os.Getenv(completionsVariable)
	if f.part.String() != "" || index == "" || of == "" {
		return shard.Shard(*f.part), nil
	}
	s, err := shard.Parse(index + "/" + of)
	if err != nil {
		return s, usageError{fmt.Errorf("%s=%s and %s=%s: %w", indexVariable, index, completionsVariable, of, err)}
	}
	return s, nil
}
