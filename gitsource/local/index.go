package local

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	// maxIndexBytes is the maximum size of an index, and of all names in it together. It is enough for about a million
	// files. Names that are not ASCII count as nonASCIICost times as large, because comparing them takes that much
	// longer.
	maxIndexBytes = 256 << 20
	nonASCIICost  = 32
	// maxNameBytes is the maximum length of a name in an index, the same as the limit on Linux paths.
	maxNameBytes = 4096
	// hashBytes is the size of the SHA-1 hash at the end of an index.
	hashBytes = 20
)

var errIndex = errors.New("not a valid index")

// readIndex calls each for the name of every entry in a git index file of version 2 to 4. The name is valid only during
// the call. The format is described at https://git-scm.com/docs/index-format.
func readIndex(file string, each func(name []byte)) error {
	opened, err := openRegular(file, maxIndexBytes)
	if err != nil {
		return err
	}
	defer opened.Close()
	i := indexReader{Reader: bufio.NewReaderSize(io.LimitReader(opened, maxIndexBytes), 2*maxNameBytes)}
	if err := i.read(each); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errIndex
		}
		return err
	}
	return nil
}

// indexReader reads an index and keeps only the last name.
type indexReader struct {
	*bufio.Reader
	version uint32
	name    []byte
}

func (i *indexReader) read(each func(name []byte)) error {
	var header [12]byte
	if _, err := io.ReadFull(i, header[:]); err != nil {
		return err
	}
	i.version = binary.BigEndian.Uint32(header[4:])
	if string(header[:4]) != "DIRC" || i.version < 2 || i.version > 4 {
		return errIndex
	}
	total := 0
	for range binary.BigEndian.Uint32(header[8:]) {
		if err := i.entry(); err != nil {
			return err
		}
		cost := len(i.name)
		if bytes.ContainsFunc(i.name, func(r rune) bool { return r >= utf8.RuneSelf }) {
			cost *= nonASCIICost
		}
		if total += cost; total > maxIndexBytes {
			return errors.New("it has too many names, or the names are too long")
		}
		each(i.name)
	}
	return i.extensions()
}

// entry reads one entry and sets the name.
func (i *indexReader) entry() error {
	var fixed [64]byte // times, mode, owner, size, hash and flags
	size := 62
	if _, err := io.ReadFull(i, fixed[:size]); err != nil {
		return err
	}
	flags := binary.BigEndian.Uint16(fixed[60:])
	if flags&0x4000 != 0 { // two more bytes of flags
		size += 2
		if _, err := io.ReadFull(i, fixed[62:]); err != nil {
			return err
		}
	}
	kept := 0
	if i.version == 4 { // the entry contains only the rest of the name, after the prefix shared with the last name
		strip, err := i.variableInt()
		if err != nil {
			return err
		}
		if strip > len(i.name) {
			return errIndex
		}
		kept = len(i.name) - strip
	}
	end, err := i.ReadSlice(0)
	if errors.Is(err, bufio.ErrBufferFull) || err == nil && kept+len(end)-1 > maxNameBytes {
		return fmt.Errorf("a name in it is longer than %d bytes", maxNameBytes)
	}
	if err != nil {
		return err
	}
	i.name = append(i.name[:kept], end[:len(end)-1]...)
	if len(i.name) == 0 || min(len(i.name), 0xfff) != int(flags&0xfff) {
		return errIndex
	}
	if i.version == 4 {
		return nil
	}
	// The entry is padded to a multiple of eight bytes. The first byte after the name has already been read.
	return i.skip(int64(7 - (size+len(i.name))%8))
}

// variableInt reads a number that is at most maxNameBytes, encoded with seven bits per byte.
func (i *indexReader) variableInt() (int, error) {
	for n := 0; ; n++ {
		b, err := i.ReadByte()
		if err != nil {
			return 0, err
		}
		n = n<<7 | int(b&0x7f)
		if n > maxNameBytes {
			return 0, errIndex
		}
		if b&0x80 == 0 {
			return n, nil
		}
	}
}

func (i *indexReader) skip(size int64) error {
	_, err := io.CopyN(io.Discard, i, size)
	return err
}

// extensions skips the extensions. An extension whose name begins with a lowercase letter can change the list of
// entries, and is rejected. In a split index, for example, most entries are in another file. The extension of a sparse
// index, sdir, is accepted: it only means that entries may be directories.
func (i *indexReader) extensions() error {
	for {
		header, err := i.Peek(8 + hashBytes)
		if len(header) <= hashBytes && errors.Is(err, io.EOF) {
			return i.skip(hashBytes)
		}
		if err != nil {
			return err
		}
		if name := header[:4]; !bytes.Equal(name, []byte("sdir")) && (name[0] < 'A' || name[0] > 'Z') {
			return fmt.Errorf("its extension %q is not supported", name)
		}
		if err := i.skip(8 + int64(binary.BigEndian.Uint32(header[4:8]))); err != nil {
			return err
		}
	}
}
