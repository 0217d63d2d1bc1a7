package kube_test

import (
	"net/http"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
)

// TestClock: the time is the API server's, also where nothing may be asked of it.
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
