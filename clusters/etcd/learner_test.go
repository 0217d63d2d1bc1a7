package etcd_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestLearnerReadiness checks that a learner's readiness in Kubernetes depends on the probe's path. /readyz fails on a
// learner (since 3.5.18). /health, which is used for versions without /readyz, succeeds. This matters because a
// PodDisruptionBudget counts ready pods.
func TestLearnerReadiness(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 1)
		clients := newClients(t)
		intime(t, "add a learner", func() error {
			_, err := clients.AddLearner(t.Context(), s.cluster(1), s.peerURL(1))
			return err
		})
		s.start(1, "existing", fmt.Sprintf("%s=%s,%s=%s", pod(0), s.peerURL(0), pod(1), s.peerURL(1)))
		serves := func() string {
			code, body, err := s.ask(1, "/health?exclude=NOSPACE")
			if err == nil && code == http.StatusOK {
				return ""
			}
			return fmt.Sprint(code, body, err)
		}
		for end := time.Now().Add(patience); serves() != ""; <-time.After(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the learner does not serve by /health: %s", serves())
			}
		}
		if code, body, err := s.ask(1, "/readyz"); err != nil || code != http.StatusServiceUnavailable || !strings.Contains(body, "learner") {
			t.Errorf("/readyz of a learner answers %d %s, %v", code, body, err)
		}
	})
}

// ask requests a path from the member's client URL.
func (s *servers) ask(i int, path string) (code int, body string, err error) {
	response, err := http.Get("http://" + s.address(i, 2379) + path)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}
