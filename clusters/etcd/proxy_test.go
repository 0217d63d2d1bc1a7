package etcd_test

import (
	"context"
	"net"
	"path"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"quorate.dev/quorate/clusters/etcd"
)

// rawCodec passes messages through unchanged.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (rawCodec) Name() string { return "raw" }

// call is a request to one pod, with a function that forwards it.
type call struct {
	pod, method string
	passOn      func() (answer []byte, err error)
}

// proxied returns the cluster behind proxies that respond with the results of answer.
func (s *servers) proxied(t *testing.T, n int, answer func(call) ([]byte, error)) etcd.Cluster {
	addresses := map[string]string{}
	for i := range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[pod(i)] = listener.Addr().String()
		etcd := s.raw(t, i)
		handle := func(_ any, stream grpc.ServerStream) error {
			var question []byte
			if err := stream.RecvMsg(&question); err != nil {
				return err
			}
			method, _ := grpc.MethodFromServerStream(stream)
			header, _ := metadata.FromIncomingContext(stream.Context())
			passOn := func() (answer []byte, err error) {
				// The client may disconnect, but its request is forwarded anyway.
				ctx := metadata.NewOutgoingContext(context.WithoutCancel(stream.Context()), header)
				err = etcd.Invoke(ctx, method, &question, &answer, grpc.ForceCodec(rawCodec{}))
				return answer, err
			}
			answer, err := answer(call{pod: pod(i), method: path.Base(method), passOn: passOn})
			if err != nil {
				return err
			}
			return stream.SendMsg(&answer)
		}
		proxy := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(handle))
		go func() { _ = proxy.Serve(listener) }()
		t.Cleanup(proxy.Stop)
	}
	cluster := s.cluster(n)
	cluster.Dial = func(ctx context.Context, pod string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addresses[pod])
	}
	return cluster
}

// losing returns the cluster behind proxies that drop successful responses to one method.
func (s *servers) losing(t *testing.T, n int, method string) etcd.Cluster {
	return s.proxied(t, n, func(c call) ([]byte, error) {
		answer, err := c.passOn()
		if c.method == method && err == nil {
			<-t.Context().Done()
		}
		return answer, err
	})
}
