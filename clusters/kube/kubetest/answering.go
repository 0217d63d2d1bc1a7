package kubetest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// Answering starts a server that handles every request with answer, and returns the configuration to access it as an
// API server. The server stops at the end of the test.
func Answering(t testing.TB, answer http.HandlerFunc) *rest.Config {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}
