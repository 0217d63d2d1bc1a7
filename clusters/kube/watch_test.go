package kube_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
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

// A server, or a proxy before it, that does not answer a watch before there is something to tell holds up
// nobody: what changes is told from where the watch begins.
func TestWatchWithoutAnswer(t *testing.T) {
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

// A run that is told to stop just before it begins to watch stops: it waits for no watch.
func TestWatchOnceStopped(t *testing.T) {
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

// refusing is an API server that lists nothing, and refuses watches.
type refusing struct{}

func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := http.StatusOK, `{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}`
	if r.URL.Query().Get("watch") != "" {
		code, body = http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Where one namespace may be listed and not watched, as whoever gives the rights there can have it, that does not have
// everything looked at each second.
func TestRefusedWatch(t *testing.T) {
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
