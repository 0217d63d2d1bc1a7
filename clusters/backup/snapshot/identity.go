package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/reconcile/panics"
)

// Identity is what tells a member and its cluster from all others.
type Identity struct{ ClusterID, MemberID uint64 }

// ErrNoMember is a data directory that holds no member.
var ErrNoMember = errors.New("the data directory holds no member")

// IdentityOf reads who the member in a data directory is: it is at the beginning of each file of its
// log. It may be running.
func IdentityOf(dataDir string) (Identity, error) {
	logs, err := filepath.Glob(filepath.Join(dataDir, member, "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		return Identity{}, errors.Join(fmt.Errorf("%s: %w", dataDir, ErrNoMember), err)
	}
	newest := slices.Max(logs) // the oldest one may be about to be removed
	var found Identity
	err = panics.Catch(func() (err error) {
		found, err = identityIn(newest)
		return err
	})
	if err != nil {
		return Identity{}, fmt.Errorf("read who the member is: %s: %w", newest, err)
	}
	return found, nil
}

// beforeMetadata is how many records a log may have before its metadata: a checksum.
const beforeMetadata = 1

func identityIn(log string) (Identity, error) {
	file, err := os.Open(log)
	if err != nil {
		return Identity{}, err
	}
	defer file.Close()
	decoder := wal.NewDecoder(fileutil.NewFileReader(file))
	for range beforeMetadata + 1 {
		var record walpb.Record
		if err := decoder.Decode(&record); err != nil {
			return Identity{}, err
		}
		switch record.GetType() {
		case wal.CrcType:
			decoder.UpdateCRC(record.GetCrc())
		case wal.MetadataType:
			var metadata etcdserverpb.Metadata
			err := proto.Unmarshal(record.Data, &metadata)
			return Identity{ClusterID: metadata.GetClusterID(), MemberID: metadata.GetNodeID()}, err
		}
	}
	return Identity{}, errors.New("it does not begin with the metadata of a member")
}
