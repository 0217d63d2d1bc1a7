// Package backuptest has a snapshot that a real etcd sent, and a cluster that sends it. It is for
// tests alone.
package backuptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// file holds a snapshot that a real etcd 3.6 sent, compressed.
const file = "testdata/backup/etcd-3.6.db.zst"

// Revision is what the snapshot holds.
const Revision = 12

// Snapshot reads it: the file is testdata/backup of the repository, which the test is run in.
func Snapshot() ([]byte, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("read the snapshot of tests: %w", err)
	}
	compressed, err := os.ReadFile(filepath.Join(dir, file))
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		compressed, err = os.ReadFile(filepath.Join(dir, file))
	}
	if err != nil {
		return nil, fmt.Errorf("read the snapshot of tests: %w", err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot of tests: %w", err)
	}
	defer decoder.Close()
	return decoder.DecodeAll(compressed, nil)
}

// MustSnapshot reads it, or ends the test.
func MustSnapshot(t testing.TB) []byte {
	t.Helper()
	content, err := Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Member is a cluster that sends what it is told to, and proves it as it is told to.
type Member struct {
	Body     io.Reader
	Revision int64
	Proof    etcd.Proof
	// ID of the cluster.
	ID decide.ID
	// Asked is what it was asked to prove.
	Asked decide.Hash
}

// Sound is one that sends a snapshot of Revision, which two members prove.
func Sound(content []byte) *Member {
	return &Member{Body: bytes.NewReader(content), Revision: Revision, ID: 0xaa,
		Proof: etcd.Proof{By: []string{"a-0", "a-1"}}}
}

// ClusterID implements backup.Source.
func (m *Member) ClusterID(context.Context) (decide.ID, error) { return m.ID, nil }

// Snapshot implements backup.Source.
func (m *Member) Snapshot(context.Context) (*etcd.Snapshot, error) {
	return &etcd.Snapshot{
		Member: "a-1", ClusterID: m.ID, Version: "3.6.16", Revision: m.Revision, Body: io.NopCloser(m.Body),
	}, nil
}

// Prove implements backup.Source.
func (m *Member) Prove(_ context.Context, wanted decide.Hash) etcd.Proof {
	m.Asked = wanted
	return m.Proof
}
