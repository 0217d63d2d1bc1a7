package etcd

import (
	"bytes"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// TestChunks checks that etcd's messages are read correctly, whatever other fields they contain. A truncated message
// causes an error and is never read as a shorter message.
func TestChunks(t *testing.T) {
	codec := newChunks()
	for _, size := range []int{0, 1, 32 << 10, 100} { // a shorter one follows a longer one
		sent := &etcdserverpb.SnapshotResponse{
			Header: &etcdserverpb.ResponseHeader{ClusterId: 7}, RemainingBytes: 1 << 40, Version: "3.6.0",
			Blob: bytes.Repeat([]byte{byte(size)}, size),
		}
		message, err := proto.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		var got etcdserverpb.SnapshotResponse
		halves := mem.BufferSlice{mem.SliceBuffer(message[:9]), mem.SliceBuffer(message[9:])}
		if err := codec.Unmarshal(halves, &got); err != nil || got.RemainingBytes != sent.RemainingBytes ||
			!bytes.Equal(got.Blob, sent.Blob) {
			t.Errorf("%d: %+v, %v", size, &got, err)
		}
		got.Blob = nil
		if err := readChunk(message[:len(message)-1], &got); err == nil {
			t.Errorf("%d: it used a truncated message", size)
		}
	}
	if err := codec.Unmarshal(nil, &etcdserverpb.StatusResponse{}); err == nil {
		t.Error("it accepted a message of a different kind")
	}
}
