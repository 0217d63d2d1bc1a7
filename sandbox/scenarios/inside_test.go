package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// openNetwork opens the pods' network, which is the control plane's network.
func (s *sandbox) openNetwork() error {
	out, err := exec.Command(binary("sandbox"), "status", "--name", s.name, "--output", "json").Output()
	if err != nil {
		return fmt.Errorf("ask for the status of sandbox %s: %w", s.name, err)
	}
	var status struct {
		Machines []struct {
			Name string `json:"name"`
			PID  int    `json:"pid"`
		} `json:"machines"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return fmt.Errorf("read the status of sandbox %s: %w", s.name, err)
	}
	for _, machine := range status.Machines {
		if machine.Name == "control-plane" {
			s.network, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", machine.PID))
			return err
		}
	}
	return fmt.Errorf("sandbox %s has no control plane", s.name)
}

// dialPod connects to a port of a pod, at its current address, from within the cluster's network.
func (s *sandbox) dialPod(ctx context.Context, namespace, name, port string) (net.Conn, error) {
	pod, err := s.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if pod.Status.PodIP == "" {
		return nil, fmt.Errorf("pod %s has no address yet", name)
	}
	return s.dialInside(ctx, net.JoinHostPort(pod.Status.PodIP, port))
}

// dialInside connects to an address in the cluster's network. A socket remains in the network in which it was created.
func (s *sandbox) dialInside(ctx context.Context, address string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err = unix.Setns(int(s.network.Fd()), unix.CLONE_NEWNET); err == nil {
			conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}()
	<-done
	if err != nil {
		return nil, fmt.Errorf("connect to %s inside the sandbox: %w", address, err)
	}
	return conn, nil
}

// dataDir returns the path, on this machine, of the data of a member of cluster a. The volumes of the nodes are
// directories on this machine.
func (w *world) dataDir(ordinal int) (string, error) {
	claim, err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).Get(w.ctx(), fmt.Sprintf("data-a-%d", ordinal), metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(w.kubeconfig), "node-*", "lib", "volumes", claim.Spec.VolumeName, "data", "member"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("the data of a-%d is found in %d places: %s", ordinal, len(found), strings.Join(found, ", "))
	}
	return found[0], nil
}
