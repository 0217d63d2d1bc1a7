package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	protocol "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	streamspdy "k8s.io/streaming/pkg/httpstream/spdy"

	"quorate.dev/quorate/internal/panics"
)

// parting is how long to wait for the API server to report the reason why a connection ended.
const parting = time.Second

// Direct connects to a port of the pod with the given IP.
func Direct(ctx context.Context, ip string, port int) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
}

// PortForward connects to a port of a pod through the API server, as kubectl does. ctx limits only the dialing, and the
// connection outlives it. If no process listens on the port, PortForward or the first Read returns
// syscall.ECONNREFUSED. PortForward requires the verbs get and create on pods/portforward.
func (c *Client) PortForward(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	type dialed struct {
		conn *forwarded
		err  error
	}
	done := make(chan dialed, 1)
	go func() {
		var d dialed
		d.err = panics.Catch(func() (err error) {
			d.conn, err = c.dialPod(ctx, namespace, pod, port)
			return err
		})
		done <- d
	}()
	select {
	case d := <-done:
		if refused(d.err) {
			return nil, fmt.Errorf("port-forward: %w: %w", ErrForbidden, d.err)
		}
		if d.err != nil {
			return nil, fmt.Errorf("port-forward: %w", d.err)
		}
		return d.conn, nil
	case <-ctx.Done():
		go func() { // client-go does not stop dialing when the context is done
			if d := <-done; d.err == nil {
				d.conn.Close()
			}
		}()
		return nil, fmt.Errorf("port-forward: %w", context.Cause(ctx))
	}
}

// ErrForbidden is returned if the user lacks a required right. Retrying does not help.
var ErrForbidden = errors.New("forbidden")

// refused reports whether the API server rejected a port-forward because of a missing right. It compares texts, because
// client-go keeps only the text of the response.
func refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), " is forbidden: ") &&
		strings.Contains(err.Error(), "pods/portforward")
}

func (c *Client) dialPod(ctx context.Context, namespace, pod string, port int) (*forwarded, error) {
	upstream, err := c.upstream(ctx, namespace, pod)
	if err != nil {
		return nil, err
	}
	conn, err := newForwarded(upstream, port)
	if err != nil {
		upstream.Close()
		return nil, err
	}
	return conn, nil
}

// upstream opens a connection to the API server that carries streams to the pod: over a WebSocket, or over SPDY
// if a proxy does not support WebSockets.
func (c *Client) upstream(ctx context.Context, namespace, pod string) (httpstream.Connection, error) {
	url := c.typed.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL().String()
	conn, err := c.overWebSocket(ctx, url)
	if httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) {
		return c.overSPDY(ctx, url)
	}
	return conn, err
}

func (c *Client) overWebSocket(ctx context.Context, url string) (httpstream.Connection, error) {
	transport, holder, err := websocket.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	conn, err := websocket.Negotiate(transport, holder, request, protocol.WebsocketsSPDYTunnelingPortForwardV1)
	if err != nil {
		return nil, err
	}
	return streamspdy.NewClientConnectionWithPings(portforward.NewTunnelingConnection("client", conn),
		portforward.PingPeriod)
}

func (c *Client) overSPDY(ctx context.Context, url string) (httpstream.Connection, error) {
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return nil, err
	}
	conn, _, err := spdy.NegotiateStreaming(upgrader, &http.Client{Transport: transport}, request,
		protocol.PortForwardV1Name)
	return conn, err
}

// forwarded is a connection to a port of a pod. It is one end of a pipe, because pipes support deadlines and streams do
// not. Data is copied between the other end and the stream. Each connection has its own upstream, because the API
// server closes an upstream when one of its streams fails.
type forwarded struct {
	net.Conn
	upstream httpstream.Connection
	// gone is closed when the stream has ended. err is the reason why it ended.
	gone chan struct{}
	err  error
}

// newForwarded opens the two streams of a connection: one for data, and one for errors from the kubelet.
func newForwarded(upstream httpstream.Connection, port int) (*forwarded, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	complaints, err := upstream.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	complaint := listen(complaints)
	headers = headers.Clone()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := upstream.CreateStream(headers)
	if err != nil { // the kubelet may close the stream before it confirms
		return nil, cmp.Or(await(complaint), fmt.Errorf("open a stream: %w", err))
	}
	near, far := net.Pipe()
	conn := &forwarded{Conn: near, upstream: upstream, gone: make(chan struct{})}
	go func() {
		_ = panics.Catch(func() error { // a broken stream is noticed in the other direction
			_, err := io.Copy(data, far)
			return err
		})
	}()
	go conn.receive(far, data, complaint)
	return conn, nil
}

// receive copies data from the pod until the stream ends.
func (f *forwarded) receive(far net.Conn, data httpstream.Stream, complaint <-chan error) {
	f.err = panics.Catch(func() error {
		_, _ = io.Copy(far, data)
		_ = data.Reset() // unread data would block the error stream
		return await(complaint)
	})
	close(f.gone)
	far.Close()
	f.upstream.Close()
}

// listen returns a channel that receives the kubelet's error, or nil if the stream ends without one.
func listen(stream httpstream.Stream) <-chan error {
	complaint := make(chan error, 1)
	go func() {
		complaint <- panics.Catch(func() error {
			_ = stream.Close() // nothing is written to it
			text, _ := io.ReadAll(io.LimitReader(stream, 4096))
			return parse(string(text))
		})
	}()
	return complaint
}

func await(complaint <-chan error) error {
	select {
	case err := <-complaint:
		return err
	case <-time.After(parting):
		return nil
	}
}

// parse returns the kubelet's message as an error, or nil if it is empty.
func parse(complaint string) error {
	switch {
	case complaint == "":
		return nil
	case strings.Contains(complaint, syscall.ECONNREFUSED.Error()):
		return syscall.ECONNREFUSED
	default:
		return errors.New(strings.Join(strings.Fields(complaint), " "))
	}
}

// Read reads from the pod. Once the stream has ended with an error, it returns that error.
func (f *forwarded) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	return n, f.cause(err, io.EOF)
}

// Write writes to the pod. Once the stream has ended, it returns the error that ended the stream.
func (f *forwarded) Write(p []byte) (int, error) {
	n, err := f.Conn.Write(p)
	return n, f.cause(err, syscall.EPIPE)
}

// cause returns the reason why the stream ended if err means that the pipe was closed with the stream. If the reason is
// unknown, it returns otherwise. Any other err is returned unchanged.
func (f *forwarded) cause(err, otherwise error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	select {
	case <-f.gone:
		return cmp.Or(f.err, otherwise)
	default: // closed locally
		return err
	}
}

// Close ends the connection and its upstream.
func (f *forwarded) Close() error {
	f.Conn.Close()
	return f.upstream.Close()
}
