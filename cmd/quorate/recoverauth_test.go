package main

import (
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// TestRecoverRejectsAuthEnabledInLog checks that a recovery is rejected if the log ends with an entry that enables
// authentication but has not been applied to the database yet, because etcd would then require a password. The command
// must not wait for etcd.
func TestRecoverRejectsAuthEnabledInLog(t *testing.T) {
	r := newRecoveries(t, `/v3/auth/user/add {"name":"root","password":"secret"}`, `/v3/auth/role/add {"name":"root"}`,
		`/v3/auth/user/grant {"user":"root","role":"root"}`)
	r.appends(&etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: 12345}, AuthEnable: &etcdserverpb.AuthEnableRequest{}})
	for _, more := range [][]string{{}, {"ns/a", "--to=" + filepath.Join(t.TempDir(), "x.db")}} {
		if got := r.recover(r.dir(), append(more, "--timeout=20s")...); got.code != exitBlocked || !strings.Contains(got.err, "the end of its log enables authentication") {
			t.Errorf("%+v", got)
		}
	}
}

// appends adds an entry to the log of the member.
func (r recoveries) appends(request *etcdserverpb.InternalRaftRequest) {
	r.Helper()
	dir := filepath.Join(r.dir(), "member", "wal")
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		r.Fatal(err)
	}
	log, err := wal.Open(zap.NewNop(), dir, snapshots[len(snapshots)-1])
	if err != nil {
		r.Fatal(err)
	}
	_, state, entries, err := log.ReadAll()
	if err != nil {
		r.Fatal(err)
	}
	last := entries[len(entries)-1]
	data, err := proto.Marshal(request)
	if err != nil {
		r.Fatal(err)
	}
	index, term, kind := last.GetIndex()+1, last.GetTerm(), raftpb.EntryNormal
	if err := log.Save(state, []*raftpb.Entry{{Index: &index, Term: &term, Type: &kind, Data: data}}); err != nil {
		r.Fatal(err)
	}
	if err := log.Close(); err != nil {
		r.Fatal(err)
	}
}
