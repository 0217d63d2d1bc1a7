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

// Encoding specifies how data is stored: compressed first, then encrypted.
type Encoding struct {
	// Compress means that data is compressed with zstd.
	Compress bool
	// Recipients are the age recipients that can decrypt the backup. No secret is required to create a backup. Without
	// recipients, the backup is not encrypted.
	Recipients []age.Recipient
}

// zstdWindow is the window size for compression, in bytes. Reading a backup requires the same amount of memory.
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

// ErrRecipients is returned if there are so many recipients that age could write the backup but not read it.
var ErrRecipients = errors.New("too many recipients")

// Check rejects recipients for which age could not decrypt its own output. age limits the size of the headers that it
// reads, but not of the headers that it writes.
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

// encode writes plain to w in the stored form.
func (e Encoding) encode(w io.Writer, plain io.Reader) error {
	if err := e.Check(); err != nil {
		return err
	}
	var closers []io.Closer // innermost first
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

// ErrEncrypted is returned if no identity is given, or none of them can decrypt the backup.
var ErrEncrypted = errors.New("the backup is encrypted")

const setIdentity = "set --identity, or identitySecretName in a declaration"

// decoder returns a reader for the original data, as the member sent it. free releases the reader's resources.
func decoder(m store.Manifest, stored io.Reader, identities []age.Identity) (plain io.Reader, free func(), err error) {
	plain, free = stored, func() {}
	if m.Encryption == store.Age {
		if len(identities) == 0 {
			return nil, free, fmt.Errorf("%w, and no identity was given: %s", ErrEncrypted, setIdentity)
		}
		if plain, err = age.Decrypt(plain, identities...); err != nil {
			if _, none := errors.AsType[*age.NoIdentityMatchError](err); none {
				err = fmt.Errorf("%w, and none of the given identities can decrypt it: %s", ErrEncrypted, setIdentity)
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

// howToRead returns the commands that decode the data with widely available tools.
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

// digest counts and hashes the bytes written to it.
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
