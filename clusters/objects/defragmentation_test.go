package objects

import (
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestDefragmentationRequests checks that different annotations yield different requests, and that requests are short
// and safe to display.
func TestDefragmentationRequests(t *testing.T) {
	requests := map[string]string{}
	for _, text := range []string{"", "2026-12-01", "2026-12-02", "Ночная дефрагментация базы данных 2026-12-01",
		"Ночная дефрагментация базы данных 2026-12-02", strings.Repeat("x", 100) + "1", strings.Repeat("x", 100) + "2",
		"a\nb", "a b", "\u202ex", "x", strings.Repeat("y", 1<<20)} {
		c := &v1alpha1.EtcdCluster{}
		c.Annotations = map[string]string{v1alpha1.AnnotationDefragment: " " + text + "\n"}
		request := DefragmentationOf(c).Request
		if other, found := requests[request]; found {
			t.Errorf("%.20q and %.20q both yield the request %q", text, other, request)
		}
		if requests[request] = text; len(request) > longestRequest || strings.ContainsAny(request, "\n\u202e") || text == "x" && request != "x" {
			t.Errorf("%.20q yields the request %q", text, request)
		}
	}
}

// TestWindowClosed checks when a maintenance window is open, in its time zone, and that an invalid window is closed.
func TestWindowClosed(t *testing.T) {
	window := func(schedule, zone, duration string) *v1alpha1.MaintenanceWindow {
		return &v1alpha1.MaintenanceWindow{Schedule: schedule, TimeZone: zone, Duration: v1alpha1.Duration(duration)}
	}
	night := window("0 2 * * 6", "Europe/Berlin", "4h") // Saturdays
	for _, test := range []struct {
		window *v1alpha1.MaintenanceWindow
		at     string
		closed bool
	}{
		{nil, "2026-12-01T12:00:00Z", false},
		{night, "2026-12-05T00:59:59Z", true},
		{night, "2026-12-05T01:00:00Z", false},
		{night, "2026-12-05T04:59:59Z", false},
		{night, "2026-12-05T05:00:00Z", true},
		{night, "2026-12-06T02:00:00Z", true},
		{night, "2026-07-04T00:00:00Z", false}, // daylight saving time
		{window("@daily", "Etc/UTC", "168h"), "2026-12-05T17:00:00Z", false},
		{window("often", "Etc/UTC", "4h"), "2026-12-05T02:00:00Z", true},
		{window("* * * * *", "Moon/Base", "4h"), "2026-12-05T02:00:00Z", true},
		{window("* * * * *", "Etc/UTC", "long"), "2026-12-05T02:00:00Z", true},
	} {
		at, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		c := &v1alpha1.EtcdCluster{}
		c.Spec.Etcd.Defragmentation = &v1alpha1.Defragmentation{Window: test.window}
		if got := WindowClosed(c, at); got != test.closed {
			t.Errorf("%+v at %s: closed %t", test.window, test.at, got)
		}
	}
	spec := v1alpha1.EtcdClusterSpec{Version: "3.6.16"}
	spec.Etcd.Defragmentation = &v1alpha1.Defragmentation{Window: window("often", "Moon/Base", "4h")}
	problems := strings.Join(checkDefragmentation(spec, "prod", "a"), "\n")
	for _, want := range []string{"spec.etcd.defragmentation.window.schedule: ", "spec.etcd.defragmentation.window.timeZone: "} {
		if !strings.Contains(problems, want) {
			t.Errorf("problems %q lack %q", problems, want)
		}
	}
}
