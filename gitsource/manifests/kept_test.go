package manifests

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestCompromisedReaderCannotFillMemory checks that a child that was compromised by its source cannot make this process
// keep more than the limits on the source allow, no matter how many messages it sends.
func TestCompromisedReaderCannotFillMemory(t *testing.T) {
	limits := Limits{FileBytes: 4 << 10, TotalBytes: 16 << 10, Objects: 20}.orDefault()
	object := func(i, size int) json.RawMessage {
		return fmt.Appendf(nil, `{"apiVersion":"etcd.quorate.dev/v1alpha1","kind":"EtcdCluster","metadata":{"name":"a%d","namespace":"dev","annotations":{"x":%q}}}`,
			i, strings.Repeat("x", size))
	}
	for name, c := range map[string]struct {
		said func(i int) message
		want string
	}{
		"many clusters": {func(i int) message {
			return message{Cluster: &wireCluster{Cluster: object(i, 1), Applied: object(i, 1)}}
		}, "more than 20 clusters"},
		"large clusters": {func(i int) message {
			return message{Cluster: &wireCluster{Cluster: object(i%10, maxLine(limits)/3), Applied: object(i%10, maxLine(limits)/3)}}
		}, ""},
		"lines": {func(i int) message {
			return message{Cluster: &wireCluster{Cluster: object(i, 1), Applied: object(i, 1), Lines: map[string]int{strings.Repeat("x", maxLine(limits)/2): 1}}}
		}, ""},
		"large problems": {func(int) message { return message{Problem: &Problem{Message: strings.Repeat("x", maxLine(limits)/2)}} }, "of clusters and problems"},
		"many problems":  {func(int) message { return message{Problem: &Problem{Message: "x"}} }, "of clusters and problems"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reading{ctx: t.Context(), options: Options{Limits: limits}}
			sent := int64(0)
			var err error
			for i := 0; err == nil && sent < 4*mostKept(limits); i++ {
				line := encoded(t, c.said(i))
				sent += int64(len(line))
				_, _, err = r.hear(line)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), settingObjects) {
				t.Errorf("after %d bytes, of which %d may be kept: error %v", sent, mostKept(limits), err)
			}
			if most := mostKept(limits) + int64(maxLine(limits)); sent > most {
				t.Errorf("%d bytes were read, at most %d expected", sent, most)
			}
		})
	}
}

// TestKeptMemoryIsLimited checks that the memory that a source's clusters take is limited, even if a compromised child
// sends many small values, which take far more memory than their text.
func TestKeptMemoryIsLimited(t *testing.T) {
	const most, values = 8 << 20, 2000
	const affinity = `{"pod":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`
	for _, c := range []struct{ start, value, end string }{
		{affinity, `null,`, `null]}}}}`}, {`{"pod":{"topologySpreadConstraints":[`, `null,`, `null]}}`}, {`{},"status":{"members":[`, `null,`, `null]}`},
		{`{},"status":{"members":[`, `{},`, `{}]}`}, {`{"a":"`, strings.Repeat("x", 100), `"}`},
		{`{"a":[`, `{},`, `0]}`}, {`{"a":[`, `[],`, `0]}`}, {`{"a":[`, `{"a":1},`, `0]}`}, {`{"a":[`, `{"\\\"":1},`, `0]}`}, {`{"a":[`, `{"\\":{}},`, `0]}`},
		{`{"a":[`, `0,`, `0]}`}, {`{"a":[`, `"",`, `0]}`}, {`{"a":[`, `"ab",`, `0]}`}, {`{"a":[`, `[[0]],`, `0]}`}, {``, `{"a":`, `0` + strings.Repeat("}", values)},
		{`{"pod":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`, `{"topologyKey":"a","labelSelector":{"matchLabels":{"a":"b"}}},`, `{}]}}}}`},
		{`{"pod":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`, `{},`, `{}]}}}}`},
		{`{"pod":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[`, `{"matchExpressions":[{}]},`, `{}]}}}}}`},
		{`{"pod":{"tolerations":[`, `{"key":"a"},`, `{}]}}`}, {`{"pod":{"topologySpreadConstraints":[`, `{"maxSkew":1},`, `{}]}}`},
	} {
		text := fmt.Appendf(nil, `{"apiVersion":"etcd.quorate.dev/v1alpha1","kind":"EtcdCluster","metadata":{"name":"a","namespace":"dev"},"spec":%s%s%s}`,
			c.start, strings.Repeat(c.value, values), c.end)
		r := reading{ctx: t.Context(), options: Options{Limits: Limits{KeptBytes: most, TotalBytes: 64 << 20}.orDefault()}}
		line := encoded(t, message{Cluster: &wireCluster{Cluster: text, Applied: text}})
		before, err := heap(), error(nil)
		for sent := 0; err == nil && sent < 1000; sent++ {
			_, _, err = r.hear(line)
		}
		if kept := heap() - before; err == nil || !strings.Contains(err.Error(), "8 MiB of memory") || !strings.Contains(err.Error(), settingObjects) || kept > most {
			t.Errorf("%s: %d bytes are kept, at most %d expected: %v", c.value, kept, most, err)
		}
		runtime.KeepAlive(r.read)
	}
}

// TestInvalidTextIsRefused checks that the main process refuses invalid UTF-8 from a child. Decoding triples the size
// of invalid UTF-8, so the main process would otherwise keep more than the child sends.
func TestInvalidTextIsRefused(t *testing.T) {
	r := reading{ctx: t.Context(), options: Options{Limits: Limits{}.orDefault()}}
	text := []byte(`{"metadata":{"name":"a","namespace":"dev","annotations":{"a":"` + "\xff" + `"}}}`)
	line := slices.Concat([]byte(`{"Cluster":{"Cluster":`), text, []byte(`,"Applied":`), text, []byte(`}}`))
	if _, _, err := r.hear(line); err == nil || !strings.Contains(err.Error(), "not valid UTF-8") {
		t.Errorf("got %v", err)
	}
}

// TestUsualClustersAreKept checks that 26 clusters with nearly all settings take less than a tenth of the 9 MiB that
// are available for clusters even in a small container.
func TestUsualClustersAreKept(t *testing.T) {
	content, err := os.ReadFile("../../testdata/objects/sealed_3_of_3.7.txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(content), "-- cluster.yaml --\n")
	text, _, _ = strings.Cut(text, "-- record.yaml --")
	tree := fstest.MapFS{}
	for i := range 26 {
		tree[fmt.Sprintf("%d.yaml", i)] = &fstest.MapFile{Data: []byte(strings.Replace(text, "name: orders", fmt.Sprintf("name: c%d", i), 1))}
	}
	read, err := Read(t.Context(), tree, Options{Limits: Limits{KeptBytes: 9 << 20 / 10}})
	if err != nil || len(read.Clusters) != 26 {
		t.Errorf("%d clusters, problems %.3q, error %v", len(read.Clusters), read.Problems, err)
	}
}

func heap() int64 {
	var now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	return int64(now.HeapAlloc)
}

// TestSourcesNearLimitsAreKept checks that sources with as many objects as allowed, in hardly fewer bytes than allowed,
// are kept: small clusters, which grow most by their defaults and their lines, and clusters with problems.
func TestSourcesNearLimitsAreKept(t *testing.T) {
	const most = 400
	detailed := func(i int) string {
		return clusterNamed(fmt.Sprintf("c%d", i)) + "  etcd: {quota: 8Gi, options: {tls-min-version: TLS1.3}}\n  tls: {mode: Disabled}\n  replicas: 2\n"
	}
	small := func(i int) string { return clusterNamed(fmt.Sprintf("c%d", i)) }
	bad := func(i int) string { return clusterNamed(fmt.Sprintf("c%d", i)) + "  replicas: none\n  colour: 1\n" }
	for name, c := range map[string]struct {
		object   func(i int) string
		rendered bool
		clusters int
	}{
		"small": {small, false, most}, "detailed": {detailed, false, most}, "bad": {bad, false, 0},
		"small, rendered": {small, true, most}, "detailed, rendered": {detailed, true, most},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for i := range most {
				text.WriteString("---\n" + c.object(i))
			}
			tree := fstest.MapFS{"a.yaml": {Data: []byte(text.String())}}
			limits := Limits{TotalBytes: int64(text.Len()) + 1<<10, Objects: most}
			if c.rendered {
				tree["kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [a.yaml]\n")}
				limits.TotalBytes *= 2 // an object is larger as JSON with its origin
			}
			read, err := Read(t.Context(), tree, Options{Limits: limits})
			if err != nil || len(read.Clusters) != c.clusters || (len(read.Problems) == 0) != (c.clusters > 0) {
				t.Errorf("%d clusters, %d problems, error %v", len(read.Clusters), len(read.Problems), err)
			}
		})
	}
}
