package manifests

import (
	"encoding/json"
	"fmt"
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

// TestCompromisedReaderCannotSendManySmallValues checks that a compromised child cannot make this process keep many
// small values, which take far more memory than their text, also if they look like text with an odd number of quotes.
func TestCompromisedReaderCannotSendManySmallValues(t *testing.T) {
	limits := Limits{FileBytes: 64 << 10, TotalBytes: 8 << 20, TotalNodes: 2000, Objects: 2000}.orDefault()
	for _, value := range []string{`{}`, `[]`, `{"a":1}`, `{"\\\"":1}`, `{"\\":{}}`, `0`, `""`} {
		text := fmt.Appendf(nil, `{"apiVersion":"etcd.quorate.dev/v1alpha1","kind":"EtcdCluster","metadata":{"name":"a","namespace":"dev"},"spec":{"x":[%s]}}`,
			strings.TrimSuffix(strings.Repeat(value+",", 9000), ","))
		r := reading{ctx: t.Context(), options: Options{Limits: limits}}
		sent, err := 0, error(nil)
		for err == nil && sent < 200 {
			sent++
			_, _, err = r.hear(encoded(t, message{Cluster: &wireCluster{Cluster: []byte(`{"metadata":{"name":"a","namespace":"dev"}}`), Applied: text}}))
		}
		if most := mostValues(limits)/9000 + 1; err == nil || sent > most || !strings.Contains(err.Error(), settingObjects) {
			t.Errorf("%s: %d messages of 9,000 values, at most %d expected: %v", value, sent, most, err)
		}
	}
}

// TestSourcesNearLimitsAreKept checks that sources with as many objects as allowed, in hardly fewer bytes than allowed,
// are kept: small clusters, which grow most by their defaults and their lines, and clusters with problems.
func TestSourcesNearLimitsAreKept(t *testing.T) {
	const most = 400
	detailed := func(i int) string {
		return clusterNamed(fmt.Sprintf("c%d", i)) + "  etcd: {quota: 8Gi, options: {tls-min-version: TLS1.3}}\n  tls: {mode: Disabled}\n  replicas: 2\n"
	}
	small := func(i int) string { return clusterNamed(fmt.Sprintf("c%d", i)) }
	bad := func(i int) string { return clusterNamed(fmt.Sprintf("c%d", i)) + "  replicas: none\n  versoin: 1\n" }
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
