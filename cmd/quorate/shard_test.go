package main

import (
	"errors"
	"testing"

	"quorate.dev/quorate/clusters/shard"
)

// TestShardComesFromFlagOrIndexedJob checks that the flag specifies the shard. Without the flag, the environment
// variables of an Indexed Job do, if both are set.
func TestShardComesFromFlagOrIndexedJob(t *testing.T) {
	for _, test := range []struct {
		flag, index, of string
		want            shard.Shard
		invalid         bool
	}{
		{},
		{index: "1", of: "4", want: shard.Shard{Index: 1, Of: 4}},
		{flag: "0/2", index: "1", of: "4", want: shard.Shard{Index: 0, Of: 2}},
		{flag: "0/2", index: "x", of: "4", want: shard.Shard{Index: 0, Of: 2}},
		{index: "1"},
		{of: "4"},
		{index: "4", of: "4", invalid: true},
		{index: "x", of: "4", invalid: true},
	} {
		t.Setenv(indexVariable, test.index)
		t.Setenv(completionsVariable, test.of)
		f := &liveFlags{part: &part{}}
		if test.flag != "" {
			if err := f.part.Set(test.flag); err != nil {
				t.Fatal(err)
			}
		}
		got, err := f.shard()
		if invalid := errors.As(err, &usageError{}); got != test.want || invalid != test.invalid || (err != nil) != test.invalid {
			t.Errorf("--shard %q with %q of %q: %s, %v", test.flag, test.index, test.of, got, err)
		}
	}
	if got, err := (&liveFlags{}).shard(); err != nil || got.IsPart() {
		t.Errorf("without such a flag: %s, %v", got, err)
	}
}
