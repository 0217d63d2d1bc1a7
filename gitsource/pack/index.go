package pack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// packed is one object of a pack.
type packed struct {
	hash   plumbing.Hash
	kind   plumbing.ObjectType
	offset int64
	// size is the size of the content. For a delta, it is the size of the result.
	size int64
	// base is the object that a delta modifies. deltas is the first delta that modifies this object, and next is the
	// next delta with the same base. none means no object.
	base, deltas, next int32
	// depth is the number of deltas between the object and a base that is not a delta.
	depth uint16
}

const none = -1

// maxChain is git's maximum length of a delta chain.
const maxChain = 4095

// scan reads the pack once from start to end, and computes the hash of each object that is not a delta. Objects are not
// kept in memory.
func (s *Store) scan(ctx context.Context) error {
	scanner := packfile.NewScanner(s.spool.reader(ctx))
	_, count, err := scanner.Header()
	if err != nil {
		return err
	}
	if int64(count) > int64(s.limits.Objects) {
		return fmt.Errorf("the pack has %d objects, more than the maximum of %d; "+
			"declare clusters in a smaller repository, or raise limits.objects", count, s.limits.Objects)
	}
	for range count {
		if err := s.scanObject(scanner); err != nil {
			return err
		}
	}
	_, err = scanner.Checksum()
	return err
}

func (s *Store) scanObject(scanner *packfile.Scanner) error {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return err
	}
	if err := s.spend(header.Length); err != nil {
		return err
	}
	object := packed{kind: header.Type, offset: header.Offset, size: header.Length, base: none,
		deltas: none, next: none}
	switch header.Type {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		hasher := plumbing.NewHasher(header.Type, header.Length)
		if err := inflate(scanner, hasher, header.Length); err != nil {
			return err
		}
		object.hash = hasher.Sum()
		s.add(object)
		return nil
	case plumbing.OFSDeltaObject, plumbing.REFDeltaObject:
		return s.scanDelta(scanner, header, object)
	default:
		return malformed("it contains an object of type %d", header.Type)
	}
}

// scanDelta records the base and the result size of a delta. It does not compute the result.
func (s *Store) scanDelta(scanner *packfile.Scanner, header *packfile.ObjectHeader, delta packed) error {
	var start prefix
	if err := inflate(scanner, &start, header.Length); err != nil {
		return err
	}
	var err error
	if delta.size, err = start.resultSize(); err != nil {
		return err
	}
	if header.Length > s.limits.ObjectBytes {
		delta.size = math.MaxInt64 // such a delta is never read, regardless of its result size
	}
	i := s.append(delta)
	if header.Type == plumbing.REFDeltaObject {
		if first, ok := s.waiting[header.Reference]; ok {
			s.objects[i].next = first
		}
		s.waiting[header.Reference] = i
		return nil
	}
	base, found := slices.BinarySearchFunc(s.objects, header.OffsetReference, func(p packed, offset int64) int {
		return int(min(1, max(-1, p.offset-offset)))
	})
	if !found || int32(base) == i {
		return malformed("a delta has no base")
	}
	s.objects[i].next, s.objects[base].deltas = s.objects[base].deltas, i
	return nil
}

func (s *Store) append(object packed) int32 {
	s.objects = append(s.objects, object)
	return int32(len(s.objects) - 1)
}

func (s *Store) add(object packed) { s.name(s.append(object), object.hash) }

// name records the hash of an object. If two objects have the same content, the first is used.
func (s *Store) name(i int32, hash plumbing.Hash) {
	s.objects[i].hash = hash
	if _, ok := s.byHash[hash]; !ok {
		s.byHash[hash] = i
	}
}

// resolve computes the hashes of the deltas. Bases are processed before the deltas that modify them. Objects that are
// too large are left out.
func (s *Store) resolve(ctx context.Context) error {
	var stack []int32
	for i, object := range s.objects {
		if !object.kind.IsDelta() {
			stack = append(stack, int32(i))
		}
	}
	resolved := len(stack)
	for len(stack) > 0 {
		base := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, delta := range s.deltasOf(base) {
			if err := ctx.Err(); err != nil {
				return err
			}
			resolved++
			if s.objects[base].size > s.limits.ObjectBytes || s.objects[delta].size > s.limits.ObjectBytes {
				s.partial = true
				continue
			}
			if err := s.resolveDelta(delta, base); err != nil {
				return err
			}
			stack = append(stack, delta)
		}
	}
	if resolved < len(s.objects) && !s.partial {
		return malformed("%d deltas have no base", len(s.objects)-resolved)
	}
	return nil
}

// deltasOf returns the deltas that modify an object, whether they refer to the object by offset or by hash. Deltas that
// refer to it by hash are returned only once.
func (s *Store) deltasOf(base int32) (deltas []int32) {
	for i := s.objects[base].deltas; i != none; i = s.objects[i].next {
		deltas = append(deltas, i)
	}
	hash := s.objects[base].hash
	if first, ok := s.waiting[hash]; ok {
		for i := first; i != none; i = s.objects[i].next {
			deltas = append(deltas, i)
		}
		delete(s.waiting, hash)
	}
	return deltas
}

func (s *Store) resolveDelta(delta, base int32) error {
	s.objects[delta].base, s.objects[delta].kind, s.objects[delta].depth = base, s.objects[base].kind,
		s.objects[base].depth+1
	if s.objects[delta].depth > maxChain {
		return malformed("a chain of deltas is longer than %d", maxChain)
	}
	content, err := s.content(delta)
	if err != nil {
		return err
	}
	s.name(delta, plumbing.ComputeHash(s.objects[delta].kind, content))
	return nil
}

// content reconstructs an object. The caller must have checked its size.
func (s *Store) content(i int32) ([]byte, error) {
	var chain []int32
	content, cached := s.cache.Get(int64(i))
	for !cached && s.objects[i].base != none {
		chain = append(chain, i)
		i = s.objects[i].base
		content, cached = s.cache.Get(int64(i))
	}
	if !cached {
		var err error
		if content, err = s.inflateAt(i); err != nil {
			return nil, err
		}
		s.cache.Put(int64(i), content)
	}
	for _, i := range slices.Backward(chain) {
		delta, err := s.inflateAt(i)
		if err != nil {
			return nil, err
		}
		if err := s.spend(s.objects[i].size); err != nil {
			return nil, err
		}
		if content, err = packfile.PatchDelta(content, delta); err != nil {
			return nil, malformed("%v", err)
		}
		s.cache.Put(int64(i), content)
	}
	return content, nil
}

// inflateAt reads the pack's data for an object: its content, or a delta.
func (s *Store) inflateAt(i int32) ([]byte, error) {
	header, err := s.scanner.SeekObjectHeader(s.objects[i].offset)
	if err != nil {
		return nil, err
	}
	if header.Length > s.limits.ObjectBytes {
		return nil, tooLarge(s.limits.ObjectBytes)
	}
	if err := s.spend(header.Length); err != nil {
		return nil, err
	}
	var content buffer
	err = inflate(s.scanner, &content, header.Length)
	return content, err
}

// spend counts bytes that are inflated or reconstructed while the pack is indexed. It returns an error if there are too
// many.
func (s *Store) spend(bytes int64) error {
	if s.left -= bytes; bytes < 0 || s.left < 0 {
		return fmt.Errorf("the pack is larger than %s uncompressed; "+
			"declare clusters in a smaller repository, or raise limits.bytes", Size(s.limits.InflatedBytes))
	}
	return nil
}

func inflate(scanner *packfile.Scanner, w io.Writer, length int64) error {
	written, _, err := scanner.NextObject(w)
	switch {
	case errors.Is(err, packfile.ErrInflatedSizeMismatch), err == nil && written != length:
		return malformed("an object does not have its declared size")
	case err != nil:
		return err
	}
	return nil
}

// buffer is a writer that grows with the data written, not with the announced size.
type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// prefix is a writer that keeps only the beginning of the data written.
type prefix struct {
	bytes [2 * binary.MaxVarintLen64]byte
	n     int
}

func (p *prefix) Write(b []byte) (int, error) {
	p.n += copy(p.bytes[p.n:], b)
	return len(b), nil
}

// resultSize returns the size of a delta's result. The start of a delta holds the sizes of its base and its result.
func (p *prefix) resultSize() (int64, error) {
	_, n := binary.Uvarint(p.bytes[:p.n])
	if n <= 0 {
		return 0, malformed("a delta is too short")
	}
	size, n := binary.Uvarint(p.bytes[n:p.n])
	if n <= 0 || size > math.MaxInt64 {
		return 0, malformed("a delta is too short")
	}
	return int64(size), nil
}
