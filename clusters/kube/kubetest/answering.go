package kubetest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// Answering returns the configuration for an API server that responds to every request with the handler. The
// server stops at the end of the test.
func Answering(t testing.TB, answer http.HandlerFunc) *rest.Config {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}
