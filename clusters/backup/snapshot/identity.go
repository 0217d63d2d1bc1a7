package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/internal/panics"
)

// Identity identifies a member and its cluster.
type Identity struct{ ClusterID, MemberID uint64 }

// FormatID formats the ID of a cluster or member as 16 hexadecimal digits, as in backups.
func FormatID(id uint64) string { return fmt.Sprintf("%016x", id) }

// DisplayID returns an ID from FormatID without leading zeros, as etcdctl and the status show it.
func DisplayID(id string) string { return strings.TrimLeft(id, "0") }

// ErrNoMember is returned for a data directory without a member.
var ErrNoMember = errors.New("the data directory does not contain a member")

// IdentityOf reads the identity of the member in a data directory from the beginning of the member's log files. The
// member may be running.
func IdentityOf(dataDir string) (Identity, error) { return IdentityIn(filepath.Join(dataDir, member)) }

// IdentityIn is like IdentityOf, but takes a member directory, whose name may differ from etcd's.
func IdentityIn(dir string) (Identity, error) {
	logs, err := logsIn(dir)
	switch {
	case err != nil:
		return Identity{}, err
	case len(logs) == 0:
		return Identity{}, fmt.Errorf("%s: %w", filepath.Dir(dir), ErrNoMember)
	}
	newest := slices.Max(logs) // the oldest file may be about to be removed
	var found Identity
	err = panics.Catch(func() (err error) {
		found, err = identityIn(newest)
		return err
	})
	if err != nil {
		return Identity{}, fmt.Errorf("read the member's identity: %s: %w", newest, err)
	}
	return found, nil
}

// logsIn returns the log files of a member.
func logsIn(dir string) ([]string, error) {
	dir = filepath.Join(dir, "wal")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var logs []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".wal" {
			continue
		}
		log := filepath.Join(dir, entry.Name())
		if err := isPlain(log, entry.Type()); err != nil {
			return nil, err
		}
		logs = append(logs, log)
	}
	return logs, err
}

// beforeMetadata is the number of records that may precede the metadata in a log. The only such record is a checksum.
const beforeMetadata = 1

// beginning is a log file that is read only up to maxBeginning. Records that claim to be longer are invalid.
type beginning struct{ file *os.File }

// maxBeginning is larger than the first records of any log, in bytes.
const maxBeginning = 64 << 10

// Read implements fileutil.FileReader.
func (b beginning) Read(p []byte) (int, error) { return b.file.Read(p) }

// FileInfo implements fileutil.FileReader.
func (b beginning) FileInfo() (fs.FileInfo, error) {
	info, err := b.file.Stat()
	return bounded{info}, err
}

// bounded describes a file, but limits its size to maxBeginning.
type bounded struct{ fs.FileInfo }

// Size implements fs.FileInfo.
func (b bounded) Size() int64 { return min(b.FileInfo.Size(), maxBeginning) }

func identityIn(log string) (Identity, error) {
	file, err := disk.Open(log)
	if err != nil {
		return Identity{}, err
	}
	defer file.Close()
	decoder := wal.NewDecoder(beginning{file})
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
