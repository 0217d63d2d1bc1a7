package objects

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"quorate.dev/quorate/clusters/kube/kubetest"
)

// apiServer is a real API server that is accessed through its HTTP API.
type apiServer struct {
	*testing.T
	url, accept string
	client      *http.Client
	decoder     runtime.Decoder
}

// apply applies an object and returns the result.
func (s *apiServer) apply(path string, object any) runtime.Object {
	s.Helper()
	return s.call(http.MethodPatch, path+"?force=true&fieldManager="+manager, "application/apply-patch+yaml", object)
}

func (s *apiServer) call(method, path, contentType string, body any) runtime.Object {
	s.Helper()
	answer, status, err := s.send(method, path, contentType, body)
	if err != nil || status >= http.StatusMultipleChoices {
		s.Fatalf("%s %s: %d %s %v", method, path, status, answer, err)
	}
	object, _, err := s.decoder.Decode(answer, nil, nil)
	if err != nil {
		s.Fatal(err)
	}
	return object
}

func (s *apiServer) send(method, path, contentType string, body any) ([]byte, int, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, 0, err
	}
	request, err := http.NewRequest(method, s.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Authorization", "Bearer secret")
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", s.accept)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return answer, response.StatusCode, err
}

// startAPIServer starts an API server and returns once it is ready.
func startAPIServer(t *testing.T) *apiServer {
	config := kubetest.Start(t).Config
	return &apiServer{
		T: t, url: config.Host, accept: runtime.ContentTypeJSON,
		client:  &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
		decoder: serializer.NewCodecFactory(schemeOfKinds()).UniversalDeserializer(),
	}
}

// schemeOfKinds returns a scheme with the kinds of a cluster's objects.
func schemeOfKinds() *runtime.Scheme {
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme} {
		utilruntime.Must(add(kinds))
	}
	return kinds
}
