package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/objects"
)

// TestEndlessResponsesAreCutOff checks that endless responses of an API server are cut off before they exhaust the
// memory.
func TestEndlessResponsesAreCutOff(t *testing.T) {
	var sent atomic.Int64
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for part := []byte(strings.Repeat(" ", 1<<20)); ; {
			n, err := w.Write(part)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	_, list := client.List(t.Context(), "ns", objects.Managed, inventory.NewSorter(inventory.AnyCluster))
	_, pods := client.Pods(t.Context(), "ns", objects.Managed)
	_, look := client.Look(t.Context(), "ConfigMap", "ns", "a")
	_, names := client.ClusterID(t.Context())
	for _, err := range []error{list, pods, look, names} {
		if err == nil || !strings.Contains(err.Error(), "its response is longer than 8 MiB") {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	client.Watch(ctx, "ns", objects.Managed, func(metav1.Object) {})
	cancel()
	if most := int64(300 << 20); sent.Load() > most { // 14 requests, plus data in flight
		t.Errorf("%d MiB were sent", sent.Load()>>20)
	}
}

// TestLargeObjectsAreReadInSmallPages checks that all objects with Quorate's labels are read, in smaller pages if
// necessary, even if they are much larger than Quorate's own objects.
func TestLargeObjectsAreReadInSmallPages(t *testing.T) {
	const there = 40
	large := strings.Repeat("x", 1000<<10)
	var mu sync.Mutex
	var limits []string
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.URL.Query().Get("continue")) // empty on the first page
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if path.Base(r.URL.Path) != "configmaps" {
			fmt.Fprint(w, `{"kind": "List", "apiVersion": "v1", "items": []}`)
			return
		}
		mu.Lock()
		limits = append(limits, fmt.Sprint(from, "+", limit))
		mu.Unlock()
		to, next := min(from+limit, there), ""
		if to < there {
			next = strconv.Itoa(to)
		}
		var items []string
		for i := from; i < to; i++ {
			items = append(items, fmt.Sprintf(`{"metadata": {"namespace": "ns", "name": "c%d", "labels": {%q: "a"}}, "data": {"x": %q}}`, i, objects.LabelCluster, large))
		}
		fmt.Fprintf(w, `{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"continue": %q}, "items": [%s]}`, next, strings.Join(items, ","))
	}))
	if err != nil {
		t.Fatal(err)
	}
	sorter := inventory.NewSorter(inventory.AnyCluster)
	if _, err := client.List(t.Context(), "ns", objects.Managed, sorter); err != nil {
		t.Fatal(err)
	}
	if got := sorter.Listed()[inventory.Key{Namespace: "ns", Name: "a"}].Applied; got != there {
		t.Errorf("%d of %d were read", got, there)
	}
	if got := strings.Join(limits, " "); got != "0+500 0+62 0+7 7+7 14+7 21+7 28+7 35+7" {
		t.Errorf("asked for %s", got)
	}
}
