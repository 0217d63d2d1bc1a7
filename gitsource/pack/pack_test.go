package pack

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// packer writes arbitrary packs.
type packer struct {
	bytes.Buffer
	objects uint32
	zlib    *zlib.Writer
}

func (p *packer) object(kind plumbing.ObjectType, declared int, content io.Reader, reference ...byte) (offset int) {
	p.objects++
	offset = p.Len() + 12
	b, size := byte(kind)<<4|byte(declared&15), declared>>4
	for ; size > 0; size >>= 7 {
		p.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	p.WriteByte(b)
	p.Write(reference)
	if p.zlib == nil {
		p.zlib = zlib.NewWriter(nil)
	}
	p.zlib.Reset(&p.Buffer)
	if _, err := io.Copy(p.zlib, content); err != nil {
		panic(err)
	}
	p.zlib.Close()
	return offset
}

func (p *packer) blob(content string) (offset int) {
	return p.object(plumbing.BlobObject, len(content), strings.NewReader(content))
}

func (p *packer) delta(base int, delta string) (offset int) {
	back := p.Len() + 12 - base
	reference := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		reference = append([]byte{0x80 | byte(back&0x7f)}, reference...)
	}
	return p.object(plumbing.OFSDeltaObject, len(delta), strings.NewReader(delta), reference...)
}

func (p *packer) pack() []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), p.objects)
	pack = append(pack, p.Bytes()...)
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

// deltaOf returns a delta, which consists of the sizes of the base and the result, and the instructions.
func deltaOf(base, result int, instructions string) string {
	return string(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(base)), uint64(result))) + instructions
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestReadMatchesGit checks that every object of a pack written by git, with both kinds of deltas, matches the object
// that git reports.
func TestReadMatchesGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
		return string(out)
	}
	git("", "init", "--quiet")
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %d of a file that grows\n", i)
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		git("", "add", ".")
		git("", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=x")
	}
	names := git("", "rev-list", "--objects", "--all", "--no-object-names")
	for _, offsets := range []string{"--delta-base-offset", "--no-delta-base-offset"} {
		packed := git(names, "pack-objects", "--stdout", "--quiet", offsets)
		store, err := Read(t.Context(), strings.NewReader(packed), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		for name := range strings.FieldsSeq(names) {
			object, err := store.EncodedObject(plumbing.AnyObject, plumbing.NewHash(name))
			if err != nil {
				t.Fatalf("%s: %s: %v", offsets, name, err)
			}
			if size, err := store.EncodedObjectSize(plumbing.NewHash(name)); err != nil || size != object.Size() {
				t.Errorf("size %d, %v; want %d", size, err, object.Size())
			}
			if want := git("", "cat-file", object.Type().String(), name); content(t, object) != want {
				t.Errorf("%s: %s differs", offsets, name)
			}
		}
		if store.Len() != len(strings.Fields(names)) {
			t.Errorf("%d objects, want %d", store.Len(), len(strings.Fields(names)))
		}
	}
}

func content(t *testing.T, object plumbing.EncodedObject) string {
	t.Helper()
	r, err := object.Reader()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var small = Limits{Objects: 100, InflatedBytes: 1 << 20, ObjectBytes: 1 << 16, FileBytes: 1 << 10}

func hostile() map[string]struct {
	pack []byte
	want string
} {
	good := new(packer)
	base := good.blob("a base that is long enough")
	good.delta(base, deltaOf(26, 6, "\x06abcdef"))
	pack := good.pack()

	make := func(fill func(*packer)) []byte {
		p := new(packer)
		fill(p)
		return p.pack()
	}
	damaged := bytes.Clone(pack)
	damaged[len(damaged)-1]++
	return map[string]struct {
		pack []byte
		want string
	}{
		"nothing":      {nil, "empty packfile"},
		"not a pack":   {[]byte("<html>hello</html>"), "malformed pack file signature"},
		"version":      {[]byte("PACK\x00\x00\x00\x03\x00\x00\x00\x00"), "unsupported packfile version"},
		"truncated":    {pack[:len(pack)-25], "the pack is malformed: it is truncated"},
		"no checksum":  {pack[:len(pack)-20], "the pack is malformed: it is truncated"},
		"bad checksum": {damaged, "checksum mismatch"},
		"too many objects": {[]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"),
			"the pack has 4294967295 objects, more than the maximum of 100; declare clusters in a smaller repository, or raise limits.objects"},
		"bomb": {make(func(p *packer) { p.object(plumbing.BlobObject, 2<<20, io.LimitReader(zeros{}, 2<<20)) }),
			"the pack is larger than 1 MiB uncompressed; declare clusters in a smaller repository, or raise limits.bytes"},
		"many small bombs": {make(func(p *packer) {
			for range 40 {
				p.object(plumbing.BlobObject, 32<<10, io.LimitReader(zeros{}, 32<<10))
			}
		}), "the pack is larger than 1 MiB"},
		"longer than declared":  {make(func(p *packer) { p.object(plumbing.BlobObject, 10, io.LimitReader(zeros{}, 2<<20)) }), "an object does not have its declared size"},
		"shorter than declared": {make(func(p *packer) { p.object(plumbing.BlobObject, 10, strings.NewReader("x")) }), "an object does not have its declared size"},
		"delta bomb": {make(func(p *packer) {
			const size = 60_000 // the size of each of 30 results, which are copied from the previous result
			base := p.object(plumbing.BlobObject, size, io.LimitReader(zeros{}, size))
			for i := range 30 {
				base = p.delta(base, deltaOf(size, size, "\xb0\x5f\xea\x01"+string(rune('a'+i))))
			}
		}), "the pack is larger than 1 MiB"},
		"delta of a lie": {make(func(p *packer) { p.delta(p.blob("abc"), deltaOf(4, 3, "\x90\x03")) }), "the pack is malformed: invalid delta"},
		"delta of delta": {make(func(p *packer) { p.delta(p.blob("abc"), "\x03") }), "a delta is too short"},
		"delta of nothing": {make(func(p *packer) {
			p.object(plumbing.REFDeltaObject, 5, strings.NewReader(deltaOf(3, 3, "\x90\x03")), bytes.Repeat([]byte{7}, 20)...)
		}), "does not have its declared size"},
		"no base": {make(func(p *packer) {
			p.object(plumbing.REFDeltaObject, 4, strings.NewReader(deltaOf(3, 3, "\x90\x03")), bytes.Repeat([]byte{7}, 20)...)
		}), "the pack is malformed: 1 deltas have no base"},
		"base between objects": {make(func(p *packer) { p.delta(p.blob("abc")+1, deltaOf(3, 3, "\x90\x03")) }), "a delta has no base"},
		"base before the pack": {make(func(p *packer) { p.blob("abc"); p.delta(-1000, deltaOf(3, 3, "\x90\x03")) }), "invalid OFS delta offset"},
		"unknown type":         {make(func(p *packer) { p.object(5, 3, strings.NewReader("abc")) }), "it contains an object of type 5"},
		"not zlib":             {append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x33"), "abcdefghijklmnopqrstuvwxyz"...), "zlib"},
	}
}

func TestHostilePacksAreRejected(t *testing.T) {
	for name, c := range hostile() {
		t.Run(name, func(t *testing.T) {
			store, err := Read(t.Context(), bytes.NewReader(c.pack), Options{Limits: small})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if store != nil {
				t.Error("with an error no store")
			}
		})
	}
}

// TestEveryByteCounts checks that a pack is rejected if it is truncated anywhere, or if any bit has changed.
func TestEveryByteCounts(t *testing.T) {
	p := new(packer)
	p.delta(p.delta(p.blob("a base that is long enough"), deltaOf(26, 6, "\x06abcdef")), deltaOf(6, 3, "\x90\x03"))
	pack := p.pack()
	if _, err := Read(t.Context(), bytes.NewReader(pack), Options{}); err != nil {
		t.Fatal(err)
	}
	for i := range pack {
		if _, err := Read(t.Context(), bytes.NewReader(pack[:i]), Options{Limits: small}); err == nil {
			t.Errorf("%d bytes are accepted as a pack", i)
		}
		other := bytes.Clone(pack)
		other[i] ^= 1 << (i % 8)
		if _, err := Read(t.Context(), bytes.NewReader(other), Options{Limits: small}); err == nil {
			t.Errorf("byte %d does not count", i)
		}
	}
}

func TestLongDeltaChainIsRejected(t *testing.T) {
	p := new(packer)
	base := p.blob("abc")
	for i := range maxChain + 1 {
		base = p.delta(base, deltaOf(3, 3, "\x90\x02"+"\x01"+string(rune('a'+i%26))))
	}
	limits := small
	limits.Objects = 10_000
	_, err := Read(t.Context(), bytes.NewReader(p.pack()), Options{Limits: limits})
	if err == nil || !strings.Contains(err.Error(), "a chain of deltas is longer than 4095") {
		t.Errorf("error %v", err)
	}
}

func TestTooLargeObjectsAreReported(t *testing.T) {
	p := new(packer)
	file := strings.Repeat("x", 2<<10)
	p.blob(file)
	p.blob("small")
	huge := strings.Repeat("y", 70_000)
	p.delta(p.blob(huge), deltaOf(len(huge), 6, "\x06abcdef"))
	hash := func(content string) plumbing.Hash { return plumbing.ComputeHash(plumbing.BlobObject, []byte(content)) }
	for name, c := range map[string]struct {
		filtered bool
		hash     plumbing.Hash
		want     string
	}{
		"file":                       {false, hash(file), "is too large: larger than 1 KiB"},
		"object":                     {false, hash(huge), "is too large: larger than 1 KiB"},
		"made of what is too large":  {false, hash("abcdef"), "is too large: larger than 64 KiB, or is a delta of an object that is too large; raise limits.bytes"},
		"left out by the server":     {true, hash("elsewhere"), "is too large: larger than 1 KiB"},
		"small, beside what is huge": {true, hash("small"), "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := Read(t.Context(), bytes.NewReader(p.pack()), Options{Limits: small, Filtered: c.filtered})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			_, err = store.EncodedObject(plumbing.BlobObject, c.hash)
			if fmt.Sprint(err) != c.want || err != nil && !errors.Is(err, ErrTooLarge) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if _, err := store.EncodedObject(plumbing.CommitObject, c.hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
				t.Errorf("a commit by that name: %v", err)
			}
		})
	}
}

// TestLargePackIsSpooledToUnlinkedFile checks that a pack that does not fit into memory is stored in an unlinked file
// in the given directory.
func TestLargePackIsSpooledToUnlinkedFile(t *testing.T) {
	dir := t.TempDir()
	p := new(packer)
	noise := strings.Repeat("\x00", memoryBytes+1)
	p.blob("before")
	p.object(plumbing.BlobObject, len(noise), strings.NewReader(noise))
	pack := append(p.pack(), noise...) // data after the pack is ignored
	store, err := Read(t.Context(), bytes.NewReader(pack), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v %v is left behind", left, err)
	}
	if _, err := store.EncodedObject(plumbing.BlobObject, plumbing.ComputeHash(plumbing.BlobObject, []byte("before"))); err != nil {
		t.Error(err)
	}
	if store.spool.file == nil {
		t.Error("the pack is in memory")
	}
	store.Close()
	_, err = Read(t.Context(), bytes.NewReader(pack), Options{Dir: filepath.Join(dir, "nowhere")})
	if err == nil || !strings.Contains(err.Error(), "store a pack of more than 4 MiB") || !strings.Contains(err.Error(), "to use a different directory, set TMPDIR") {
		t.Errorf("error %v", err)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := new(packer)
	p.blob("abc")
	if _, err := Read(ctx, bytes.NewReader(p.pack()), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// FuzzRead checks that Read returns objects that hash to their names, or an error, for any input.
func FuzzRead(f *testing.F) {
	for _, c := range hostile() {
		if len(c.pack) < 1<<10 {
			f.Add(c.pack)
		}
	}
	p := new(packer)
	p.delta(p.blob("abc"), deltaOf(3, 3, "\x90\x03"))
	f.Add(p.pack())
	f.Fuzz(func(t *testing.T, pack []byte) {
		if len(pack) > 20 { // with a correct checksum, more of the pack is processed
			sum := sha1.Sum(pack[:len(pack)-20])
			pack = append(bytes.Clone(pack[:len(pack)-20]), sum[:]...)
		}
		store, err := Read(t.Context(), bytes.NewReader(pack), Options{Limits: small})
		if err != nil {
			return
		}
		defer store.Close()
		for hash := range store.byHash {
			object, err := store.EncodedObject(plumbing.AnyObject, hash)
			if errors.Is(err, ErrTooLarge) {
				continue
			}
			if err != nil || object.Hash() != hash {
				t.Errorf("%s: %v", hash, err)
			}
		}
	})
}
