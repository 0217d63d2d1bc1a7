package kube_test

import (
	"net/http"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
)

// TestClock checks that Clock returns the API server's time, even if requests are forbidden.
func TestClock(t *testing.T) {
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	said := tomorrow.Format(http.TimeFormat)
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = []string{said}
		w.WriteHeader(http.StatusForbidden)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if now, err := client.Clock(t.Context()); err != nil || !now.Equal(tomorrow) {
		t.Errorf("%s, %v", now, err)
	}
	said = "soon"
	if now, err := client.Clock(t.Context()); err == nil {
		t.Errorf("%s", now)
	}
}

// TestNow checks that every response updates the time, within the precision of the header and the duration of the
// request. The clock advances between responses. A response without a Date header does not change it.
func TestNow(t *testing.T) {
	for _, ahead := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour} {
		said := ""
		client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = []string{said}
			w.WriteHeader(http.StatusForbidden)
		}))
		if err != nil {
			t.Fatal(err)
		}
		if now, err := client.Now(); err == nil {
			t.Errorf("it is %s before any answer", now)
		}
		for _, date := range []string{"soon", time.Now().Add(ahead).UTC().Format(http.TimeFormat), "later"} {
			said = date
			_, _ = client.Nodes(t.Context())
			now, err := client.Now()
			switch {
			case date == "soon" && err == nil:
				t.Errorf("a response without a time sets it to %s", now)
			case date == "soon":
			case err != nil || now.Sub(time.Now().Add(ahead)).Abs() > 30*time.Second:
				t.Errorf("ahead %s, %s: %s, %v", ahead, date, now, err)
			}
		}
		first, _ := client.Now()
		if second, err := client.Now(); err != nil || second.Before(first) {
			t.Errorf("after %s it is %s, %v", first, second, err)
		}
	}
}
