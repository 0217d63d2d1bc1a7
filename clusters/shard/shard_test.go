package shard_test

import (
	"fmt"
	"testing"

	"quorate.dev/quorate/clusters/shard"
)

// names returns the names of a few thousand clusters.
func names() (all []string) {
	for n := range 4000 {
		all = append(all, fmt.Sprintf("team-%d/c%04d", n%20, n))
	}
	return all
}

// owner returns the shard that owns a cluster. It fails the test unless there is exactly one.
func owner(t *testing.T, cluster string, of int) int {
	t.Helper()
	found := -1
	for i := range of {
		if !(shard.Shard{Index: i, Of: of}).Owns(cluster) {
			continue
		}
		if found >= 0 {
			t.Fatalf("%s is in the shards %d and %d of %d", cluster, found, i, of)
		}
		found = i
	}
	if found < 0 {
		t.Fatalf("%s is in none of %d shards", cluster, of)
	}
	return found
}

// TestShardsAreDisjointAndEven checks that every cluster is in exactly one shard, and that all shards have about the
// same size.
func TestShardsAreDisjointAndEven(t *testing.T) {
	for _, of := range []int{1, 2, 3, 4, 7} {
		sizes := make([]int, of)
		for _, cluster := range names() {
			sizes[owner(t, cluster, of)]++
		}
		for i, size := range sizes {
			if even := 4000 / of; size < even*8/10 || size > even*12/10 {
				t.Errorf("shard %d/%d has %d clusters, want about %d", i, of, size, even)
			}
		}
	}
	if !(shard.Shard{}).Owns("ns/a") {
		t.Error("without shards, ns/a has no owner")
	}
}

// TestAddedShardTakesOnlyItsPart checks that an additional shard takes its share of the clusters, and that no other
// cluster moves.
func TestAddedShardTakesOnlyItsPart(t *testing.T) {
	for of := 1; of < 6; of++ {
		moved := 0
		for _, cluster := range names() {
			before, after := owner(t, cluster, of), owner(t, cluster, of+1)
			if before == after {
				continue
			}
			if moved++; after != of {
				t.Fatalf("%s went from %d to %d as shard %d came", cluster, before, after, of)
			}
		}
		if even := 4000 / (of + 1); moved < even*8/10 || moved > even*12/10 {
			t.Errorf("%d clusters moved from %d shards to one more, about %d would be even", moved, of, even)
		}
	}
}

// TestAssignmentIsStable checks that the shard of a cluster does not change between versions. Otherwise, if shards run
// different versions, several of them or none might act on the cluster.
func TestAssignmentIsStable(t *testing.T) {
	for cluster, want := range map[string]int{"default/a": 2, "default/b": 1, "team/orders": 3} {
		if got := owner(t, cluster, 4); got != want {
			t.Errorf("%s is in shard %d of 4, want %d", cluster, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"0/1", "3/4", "999/1000"} {
		if s, err := shard.Parse(text); err != nil || s.String() != text {
			t.Errorf("%s: %s, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "1", "/", "4/4", "-1/4", "0/0", "1/x", "x/1", "0/1001", "0/4/4", " 0/4"} {
		if s, err := shard.Parse(text); err == nil {
			t.Errorf("%q is treated as %s", text, s)
		}
	}
}
