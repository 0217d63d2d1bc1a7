package scenarios

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// forward opens a loopback port that forwards to a port of a pod. It returns host:port and a function that closes the
// port.
func (w *world) forward(pod string, port int32) (string, func(), error) {
	transport, upgrader, err := spdy.RoundTripperFor(w.config)
	if err != nil {
		return "", nil, fmt.Errorf("connect to pod %s: %w", pod, err)
	}
	url := w.kube.CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	stop, ready := make(chan struct{}), make(chan struct{})
	var problems bytes.Buffer
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, &problems)
	if err != nil {
		return "", nil, fmt.Errorf("connect to pod %s: %w", pod, err)
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case err := <-failed:
		return "", nil, fmt.Errorf("connect to pod %s: %w", pod, err)
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stop)
		return "", nil, fmt.Errorf("connect to pod %s: %w", pod, err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), sync.OnceFunc(func() { close(stop); <-failed }), nil
}

// mustForward is like forward, but fails the test on errors, and closes the port at the end of the test.
func (w *world) mustForward(t testing.TB, pod string, port int32) string {
	t.Helper()
	address, stop, err := w.forward(pod, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}

// pod reads a pod.
func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod, err := w.kube.CoreV1().Pods(w.namespace).Get(w.ctx(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return pod
}

// metrics reads the etcd metrics of a pod, without a certificate.
func (w *world) metrics(pod string) string {
	w.t.Helper()
	for _, container := range w.pod(pod).Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == "metrics" {
				return w.httpGet("http://" + w.mustForward(w.t, pod, port.ContainerPort) + "/metrics")
			}
		}
	}
	w.t.Fatalf("pod %s has no port called metrics", pod)
	return ""
}

func (w *world) httpGet(url string) string {
	w.t.Helper()
	response, err := http.Get(url)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		w.t.Fatalf("get %s: %s: %s %v", url, response.Status, body, err)
	}
	return string(body)
}
