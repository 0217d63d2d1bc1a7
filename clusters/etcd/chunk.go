package etcd

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// chunks is the codec of a snapshot stream. It reuses one buffer, so each message overwrites the previous one. For each
// message, gRPC's own codec would clear 1 MiB, because a message is slightly longer than 32 KiB, and allocate memory
// for the content.
type chunks struct {
	encoding.CodecV2
	buffer []byte
}

func newChunks() *chunks { return &chunks{CodecV2: encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c *chunks) Unmarshal(data mem.BufferSlice, into any) error {
	response, is := into.(*etcdserverpb.SnapshotResponse)
	if !is {
		return fmt.Errorf("%T is not a snapshot message", into)
	}
	c.buffer = slices.Grow(c.buffer[:0], data.Len())[:data.Len()]
	data.CopyTo(c.buffer)
	return readChunk(c.buffer, response)
}

// Field numbers in etcd's SnapshotResponse (rpc.proto).
const (
	fieldRemaining protowire.Number = 2
	fieldBlob      protowire.Number = 3
)

var errChunk = errors.New("it sent an invalid snapshot message")

// readChunk reads the fields of a message that body needs. The result shares the message's bytes.
func readChunk(message []byte, into *etcdserverpb.SnapshotResponse) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errChunk
		}
		message = message[n:]
		switch {
		case number == fieldRemaining && kind == protowire.VarintType:
			into.RemainingBytes, n = protowire.ConsumeVarint(message)
		case number == fieldBlob && kind == protowire.BytesType:
			into.Blob, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errChunk
		}
		message = message[n:]
	}
	return nil
}
