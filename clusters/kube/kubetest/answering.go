package kubetest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// Answering says how to reach an API server whose every answer is the handler's. It ends with the
// test.
func Answering(t testing.TB, answer http.HandlerFunc) *rest.Config {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}
