package clusters

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func failedCreate(note string, ago time.Duration) eventsv1.Event {
	e := eventsv1.Event{Reason: "FailedCreate", Note: note, DeprecatedLastTimestamp: metav1.NewTime(noon.Add(-ago))}
	e.Regarding.UID = "s1"
	return e
}

const quotaExceeded = `Create Pod a-2 in StatefulSet a failed error: pods "a-2" is forbidden: exceeded quota: q, requested: pods=1`

func TestRefusal(t *testing.T) {
	for _, test := range []struct {
		name, want string
		events     []eventsv1.Event
	}{
		{name: "no events"},
		{name: "quota exceeded", events: []eventsv1.Event{failedCreate(quotaExceeded, time.Minute)}, want: `pods "a-2" is forbidden: exceeded quota: q, requested: pods=1`},
		{name: "event is too old", events: []eventsv1.Event{failedCreate(quotaExceeded, time.Hour)}},
		{name: "event for a different pod", events: []eventsv1.Event{failedCreate(strings.ReplaceAll(quotaExceeded, "a-2", "a-22"), time.Minute)}},
		{name: "claim could not be created", events: []eventsv1.Event{failedCreate(`create Claim data-a-2 for Pod a-2 in StatefulSet a failed error: denied`, 0)}, want: "denied"},
		{name: "most recent event is reported", events: []eventsv1.Event{
			failedCreate("Create Pod a-2 in StatefulSet a failed error: new\nlines", time.Minute), failedCreate(quotaExceeded, 2*time.Minute),
		}, want: "new lines"},
		{name: "long message is truncated", events: []eventsv1.Event{failedCreate("create Pod a-2 in StatefulSet a failed error: "+strings.Repeat("x", 299)+"ö", 0)}, want: strings.Repeat("x", 299) + "…"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := refusal(test.events, "a-2", noon); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// eventServer is an API server that lists events or denies access to events, and records the requests.
type eventServer struct {
	events []eventsv1.Event
	refuse bool
	asked  []string
}

func (s *eventServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.URL.Path+"?"+r.URL.Query().Get("fieldSelector"))
	w.Header().Set("Content-Type", "application/json")
	if s.refuse {
		w.WriteHeader(http.StatusForbidden)
	}
	_ = json.NewEncoder(w).Encode(eventsv1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "EventList"}, Items: s.events})
}

// TestFindRefused checks that events are read only while a wanted pod is missing, and that no reason is given if events
// cannot be read.
func TestFindRefused(t *testing.T) {
	stranger := failedCreate(strings.ReplaceAll(quotaExceeded, "a-2", "a-1"), 0)
	stranger.Regarding.UID = "s0"
	for _, test := range []struct {
		name   string
		server eventServer
		change func(*cluster)
		asked  int
		want   map[int]string
	}{
		{name: "all wanted pods exist", change: func(c *cluster) { c.state.Objects.RunsReplicas = 1 }},
		{name: "a claim is still being deleted", change: func(c *cluster) {
			c.state.Objects.RunsReplicas = 1
			c.state.Replicas[0] = decide.Replica{Pod: decide.PodAbsent, VolumeUID: "v", VolumeTerminating: true}
		}},
		{name: "cluster is declared Stopped", change: func(c *cluster) { c.target.Cluster.Spec.Lifecycle = v1alpha1.LifecycleStopped }},
		{name: "events cannot be read", server: eventServer{refuse: true}, asked: 1},
		{
			name: "a pod is missing", server: eventServer{events: []eventsv1.Event{failedCreate(quotaExceeded, 0), stranger}}, asked: 1,
			want: map[int]string{2: `pods "a-2" is forbidden: exceeded quota: q, requested: pods=1`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "s1"}}
			c := &cluster{
				live: &Live{kube: clientOf(t, &test.server)}, names: objects.NamesOf("a"),
				own:   &inventory.Cluster{Objects: map[string]metav1.Object{"StatefulSet/a": set}},
				state: decide.State{Name: "a", Now: noon, Objects: decide.Objects{RunsReplicas: 3}, Replicas: []decide.Replica{{Pod: decide.PodReady}}},
			}
			c.target.Cluster.Spec.Lifecycle = v1alpha1.LifecycleRunning
			if test.change != nil {
				test.change(c)
			}
			c.findRefused(t.Context())
			if len(test.server.asked) != test.asked {
				t.Errorf("asked %q", test.server.asked)
			}
			for n := range 3 {
				if got := c.state.Replica(n).PodRefused; got != test.want[n] {
					t.Errorf("a-%d: %q, want %q", n, got, test.want[n])
				}
			}
			if told := strings.Contains(c.state.Replica(1).PodMessage, "not created: list Events"); told != test.server.refuse {
				t.Errorf("a-1: %q", c.state.Replica(1).PodMessage)
			}
			for _, path := range test.server.asked {
				if path != "/apis/events.k8s.io/v1/namespaces/ns/events?reason=FailedCreate,regarding.kind=StatefulSet,regarding.name=a" {
					t.Errorf("asked %s", path)
				}
			}
		})
	}
}

// TestRightMissing checks that the API server's own message is reported if it denies access to the pods.
func TestRightMissing(t *testing.T) {
	c := &cluster{live: &Live{}}
	if words := c.rightMissing(); words != "" {
		t.Errorf("no request was refused: %q", words)
	}
	c.noteRefusal(errors.New("port-forward: forbidden: it is forbidden: not by the API server"))
	if words := c.rightMissing(); words != "" {
		t.Errorf("a different error: %q", words)
	}
	c.noteRefusal(errors.Join(kube.ErrForbidden, errors.New("pods \"a-0\" is forbidden: User \"ci\" cannot create resource \"pods/portforward\"")))
	if words := c.rightMissing(); words != `User "ci" cannot create resource "pods/portforward"` {
		t.Errorf("got %q", words)
	}
}
