package kube_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
)

// TestUnansweredWatchDoesNotBlock checks that a server or proxy that does not respond to a watch until something
// changes does not delay anything, and that all changes since the start of the watch are reported.
func TestUnansweredWatchDoesNotBlock(t *testing.T) {
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, `{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}`)
			return
		}
		if r.URL.Query().Get("resourceVersion") != "7" {
			t.Errorf("watches from %q", r.URL.Query().Get("resourceVersion"))
		}
		<-r.Context().Done()
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan struct{})
	go func() {
		client.Watch(ctx, "", "", func(metav1.Object) {})
		close(begun)
	}()
	select {
	case <-begun:
	case <-time.After(20 * time.Second):
		t.Error("it waits for an answer to the watch")
	}
}

// TestWatchIgnoresStatusChanges checks that a watch reports changes to an EtcdCluster except for status changes, which
// Quorate makes itself. For other kinds, it reports all changes.
func TestWatchIgnoresStatusChanges(t *testing.T) {
	const one = `{"type": %q, "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
		"metadata": {"namespace": "ns", "name": %q, "uid": "u", "resourceVersion": "%d", "generation": %d, "annotations": {"a": %q},
			"managedFields": [{"manager": "m%[3]d", "operation": "Apply", "subresource": "status"}]}}}`
	events := []struct {
		kind, name string
		generation int
		annotation string
	}{
		{"ADDED", "first", 1, ""}, {"MODIFIED", "status", 1, ""}, {"MODIFIED", "spec", 2, ""}, {"MODIFIED", "status", 2, ""},
		{"MODIFIED", "annotated", 2, "x"}, {"MODIFIED", "status", 2, "x"}, {"DELETED", "deleted", 2, "x"}, {"MODIFIED", "again", 2, "x"},
	}
	for resource, want := range map[string]string{
		"etcdclusters": "first spec annotated deleted again",
		"pods":         "first status spec status annotated status deleted again",
	} {
		client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Query().Get("watch") == "" {
				fmt.Fprint(w, `{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}`)
				return
			}
			if strings.HasSuffix(r.URL.Path, "/"+resource) {
				for n, e := range events {
					fmt.Fprintf(w, one, e.kind, e.name, n+8, e.generation, e.annotation)
				}
				fmt.Fprintf(w, one, "DELETED", "last", 20, 9, "")
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		told := make(chan string, 100)
		client.Watch(ctx, "", "", func(object metav1.Object) {
			if object != nil {
				told <- object.GetName()
			}
		})
		var names []string
		for name := ""; name != "last" && ctx.Err() == nil; {
			select {
			case name = <-told:
				names = append(names, name)
			case <-ctx.Done():
			}
		}
		cancel()
		if got := strings.Join(names, " "); got != want+" last" {
			t.Errorf("%s: reported %q, want %q", resource, got, want)
		}
	}
}

// TestCanceledWatchReturns checks that a run that is stopped just before it starts a watch does not wait for the watch.
func TestCanceledWatchReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := kube.New(&rest.Config{Host: "https://192.0.2.1", Transport: refusing{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		client.Watch(ctx, "shop", "", func(metav1.Object) {})
	})
}

// refusing is an API server that returns empty lists and rejects watches.
type refusing struct{}

func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := http.StatusOK, `{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}`
	if r.URL.Query().Get("watch") != "" {
		code, body = http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestRefusedWatchIsRetriedSlowly checks that a run that may list but not watch a namespace does not observe its
// clusters every second.
func TestRefusedWatchIsRetriedSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := kube.New(&rest.Config{Host: "https://192.0.2.1", Transport: refusing{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var missed atomic.Int32
		client.Watch(ctx, "shop", "", func(metav1.Object) { missed.Add(1) })
		<-ctx.Done()
		synctest.Wait()
		if n := missed.Load(); n < 4 || n > 80 { // four kinds
			t.Errorf("changes may have been missed %d times within ten minutes", n)
		}
	})
}

// ending is an API server that ends each watch after a minute, during which it reports one object and a bookmark. It
// rejects watches from versions older than oldest.
type ending struct {
	oldest string
	from   chan string // the versions from which pods are watched
}

func (e ending) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}, "items": []}`))}
	q := r.URL.Query()
	if q.Get("watch") == "" {
		return answer, nil
	}
	from := q.Get("resourceVersion")
	if strings.HasSuffix(r.URL.Path, "/pods") {
		e.from <- from
	}
	version, _ := strconv.Atoi(from)
	const event = `{"type": %q, "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "%d"}}}`
	told := fmt.Sprintf(event, "ADDED", version+1)
	if q.Get("allowWatchBookmarks") == "true" {
		told += fmt.Sprintf(event, "BOOKMARK", version+10)
	}
	if from < e.oldest {
		told = `{"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}}`
	}
	read, write := io.Pipe()
	answer.Body = read
	go func() {
		io.WriteString(write, told)
		time.Sleep(time.Minute)
		write.Close()
	}()
	return answer, nil
}

// TestWatchContinuesFromLastVersion checks that, when the API server ends a watch, the next watch continues from the
// last version, and no changes count as missed. If the last version is too old, changes may have been missed.
func TestWatchContinuesFromLastVersion(t *testing.T) {
	for oldest, missing := range map[string]bool{"10": false, "50": true} {
		synctest.Test(t, func(t *testing.T) {
			e := ending{oldest, make(chan string, 1000)}
			client, err := kube.New(&rest.Config{Host: "https://192.0.2.1", Transport: e})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute-time.Second) // in the middle of a watch
			defer cancel()
			var missed, told atomic.Int32
			client.Watch(ctx, "shop", "", func(object metav1.Object) {
				if object == nil {
					missed.Add(1)
				} else {
					told.Add(1)
				}
			})
			<-ctx.Done()
			synctest.Wait()
			time.Sleep(2 * time.Minute) // until all responses have ended
			if got := missed.Load() > 0; got != missing {
				t.Errorf("from %s on: changes may have been missed %d times within ten minutes", oldest, missed.Load())
			}
			var from []string
			for len(e.from) > 0 {
				from = append(from, <-e.from)
			}
			want := "10 20 30 40 50 60 70 80 90 100"
			if got := strings.Join(from, " "); !missing && (got != want || told.Load() != 40) {
				t.Errorf("it watched from %s, want %s, and reported %d objects", got, want, told.Load())
			}
		})
	}
}
