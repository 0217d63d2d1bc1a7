// Package backuptest provides tests with a snapshot from a real etcd, and with a fake cluster that sends this snapshot.
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
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// file is a compressed snapshot from a real etcd 3.6.
const file = "testdata/backup/etcd-3.6.db.zst"

// Revision is the revision of the snapshot.
const Revision = 12

// Snapshot returns the snapshot in testdata/backup of the repository that contains the test.
func Snapshot() ([]byte, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("read the test snapshot: %w", err)
	}
	compressed, err := os.ReadFile(filepath.Join(dir, file))
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		compressed, err = os.ReadFile(filepath.Join(dir, file))
	}
	if err != nil {
		return nil, fmt.Errorf("read the test snapshot: %w", err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return nil, fmt.Errorf("read the test snapshot: %w", err)
	}
	defer decoder.Close()
	return decoder.DecodeAll(compressed, nil)
}

// MustSnapshot returns the snapshot. It fails the test if the snapshot cannot be read.
func MustSnapshot(t testing.TB) []byte {
	t.Helper()
	content, err := Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Member is a fake cluster that sends the configured snapshot and proof.
type Member struct {
	Body     io.Reader
	Revision int64
	Proof    etcd.Proof
	// ID is the cluster ID.
	ID decide.ID
	// Now and Unknown are the revision and the error that CurrentRevision returns.
	Now     int64
	Unknown error
	// Asked is the hash that the Member was asked to prove.
	Asked decide.Hash
}

// Sound returns a Member that sends a snapshot at Revision, proven by two members.
func Sound(content []byte) *Member {
	return &Member{Body: bytes.NewReader(content), Revision: Revision, Now: Revision, ID: 0xaa,
		Proof: etcd.Proof{By: []string{"a-0", "a-1"}}}
}

// ClusterID implements backup.Source.
func (m *Member) ClusterID(context.Context) (decide.ID, error) { return m.ID, nil }

// Snapshot implements backup.Source.
func (m *Member) Snapshot(_ context.Context, except ...string) (*etcd.Snapshot, error) {
	if slices.Contains(except, "a-1") {
		return nil, errors.New("no other member responds")
	}
	return &etcd.Snapshot{
		Member: "a-1", ClusterID: m.ID, Version: "3.6.16", Revision: m.Revision, Body: io.NopCloser(m.Body),
	}, nil
}

// CurrentRevision implements backup.Source.
func (m *Member) CurrentRevision(context.Context) (decide.ID, int64, error) {
	return m.ID, m.Now, m.Unknown
}

// Prove implements backup.Source.
func (m *Member) Prove(_ context.Context, wanted decide.Hash) etcd.Proof {
	m.Asked = wanted
	return m.Proof
}
