package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"quorate.dev/quorate/clusters/backup/store"
)

// Encoding is how data are stored: compressed first, and then encrypted.
type Encoding struct {
	// Compress with zstd.
	Compress bool
	// Recipients who can read the backup; nobody needs a secret to make one. Without any it is not
	// encrypted.
	Recipients []age.Recipient
}

// The window bounds what it takes to read a backup as well: whoever reads it needs as much.
const zstdWindow = 4 << 20

func (e Encoding) compression() string {
	if e.Compress {
		return store.Zstd
	}
	return ""
}

func (e Encoding) encryption() string {
	if len(e.Recipients) > 0 {
		return store.Age
	}
	return ""
}

// ErrRecipients are recipients of whom age writes more than it reads: nobody could read the backup.
var ErrRecipients = errors.New("nobody could read what is encrypted to so many recipients")

// Check refuses recipients to whom age encrypts what it does not decrypt: it bounds the headers that it reads, and not
// those that it writes.
func (e Encoding) Check() error {
	if len(e.Recipients) == 0 {
		return nil
	}
	header := &bytes.Buffer{}
	if _, err := age.Encrypt(header, e.Recipients...); err != nil {
		return fmt.Errorf("encrypt: %w", err)
	}
	if _, err := age.ExtractHeader(header); err != nil {
		return fmt.Errorf("%w: %w", ErrRecipients, err)
	}
	return nil
}

// encode writes plain data to w as they are stored.
func (e Encoding) encode(w io.Writer, plain io.Reader) error {
	if err := e.Check(); err != nil {
		return err
	}
	var closers []io.Closer // the innermost first
	if len(e.Recipients) > 0 {
		encrypted, err := age.Encrypt(w, e.Recipients...)
		if err != nil {
			return fmt.Errorf("encrypt: %w", err)
		}
		w, closers = encrypted, append(closers, encrypted)
	}
	if e.Compress {
		compressed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithWindowSize(zstdWindow))
		if err != nil {
			return fmt.Errorf("compress: %w", err)
		}
		w, closers = compressed, append(closers, compressed)
	}
	if _, err := io.Copy(w, plain); err != nil {
		return err
	}
	for i := len(closers) - 1; i >= 0; i-- {
		if err := closers[i].Close(); err != nil {
			return err
		}
	}
	return nil
}

// ErrEncrypted is a backup that none of the given identities can read.
var ErrEncrypted = errors.New("it is encrypted, and no identity that was given can read it (--identity)")

// decoder reads data as the member sent them. Close frees what it holds.
func decoder(m store.Manifest, stored io.Reader, identities []age.Identity) (plain io.Reader, free func(), err error) {
	plain, free = stored, func() {}
	if m.Encryption == store.Age {
		if len(identities) == 0 {
			return nil, free, ErrEncrypted
		}
		if plain, err = age.Decrypt(plain, identities...); err != nil {
			if _, none := errors.AsType[*age.NoIdentityMatchError](err); none {
				err = ErrEncrypted
			}
			return nil, free, err
		}
	}
	if m.Compression == store.Zstd {
		compressed, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(2*zstdWindow))
		if err != nil {
			return nil, free, fmt.Errorf("decompress: %w", err)
		}
		plain, free = compressed, compressed.Close
	}
	return plain, free, nil
}

// howToRead says how to get at the data with common tools.
func howToRead(m store.Manifest) []string {
	file, steps := m.Data, []string{}
	if m.Encryption == store.Age {
		without := file[:len(file)-len(".age")]
		steps = append(steps, fmt.Sprintf("age --decrypt --identity KEY --output %s %s", without, file))
		file = without
	}
	if m.Compression == store.Zstd {
		without := file[:len(file)-len(".zst")]
		steps = append(steps, fmt.Sprintf("zstd --decompress -o %s %s", without, file))
		file = without
	}
	return append(steps, "etcdutl snapshot status "+file, "etcdutl snapshot restore "+file)
}

// digest counts what passes through it, and sums it up.
type digest struct {
	sum  hash.Hash
	size int64
}

func newDigest() *digest { return &digest{sum: sha256.New()} }

func (d *digest) Write(p []byte) (int, error) {
	d.size += int64(len(p))
	return d.sum.Write(p)
}

func (d *digest) String() string { return hex.EncodeToString(d.sum.Sum(nil)) }
