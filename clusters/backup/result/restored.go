package result

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// RestoredFormat is the format of the results of restores that are written here. One of another format
// is not read.
const RestoredFormat = "quorate.dev/restore-result/v1"

// Restored is what is known of a data directory that was made from a backup of a store.
type Restored struct {
	Format string `json:"format"`
	// Slot of the backup, and Data, the name of its file.
	Slot time.Time `json:"slot"`
	Data string    `json:"data"`
	// SourceClusterID is that of the etcd that was backed up, as 16 hexadecimal digits, and Revision
	// that of the snapshot.
	SourceClusterID string `json:"sourceClusterID"`
	Revision        int64  `json:"revision"`
	// NewRevision is what etcd starts at: raised, so that nobody has seen it.
	NewRevision int64 `json:"newRevision"`
	// Bytes and SHA256 of the snapshot, as the member sent it.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// ClusterVersion and StorageVersion of the data, as MAJOR.MINOR.0, empty where they do not say so.
	ClusterVersion string `json:"clusterVersion,omitempty"`
	StorageVersion string `json:"storageVersion,omitempty"`
	// StartedAt and FinishedAt are when it was restored, and not when it was backed up.
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	// Suspect: etcd had found that members hold different data.
	Suspect bool `json:"suspect"`
	// ClusterID and MemberID that etcd has from now on, as 16 hexadecimal digits.
	ClusterID string `json:"clusterID"`
	MemberID  string `json:"memberID"`
}

// ErrRestored is a text that is no result of a restore.
var ErrRestored = errors.New("it is no result of a restore")

// Encode writes the result as one line.
func (r Restored) Encode() ([]byte, error) {
	r.Format = RestoredFormat
	r.utc()
	if problem := r.problem(); problem != "" {
		return nil, fmt.Errorf("write the result of a restore: %s", problem)
	}
	line, err := encode(r, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("write the result of a restore: %w", err)
	}
	return line, nil
}

// ParseRestored reads what Encode wrote, and takes nothing that it could not have written.
func ParseRestored(text string) (Restored, error) {
	var r Restored
	problem := decode(text, MaxBytes, &r)
	if problem == "" {
		r.utc()
		problem = r.problem()
	}
	if problem != "" {
		return Restored{}, fmt.Errorf("%w: %s", ErrRestored, problem)
	}
	return r, nil
}

func (r *Restored) utc() {
	r.Slot, r.StartedAt, r.FinishedAt = r.Slot.UTC(), r.StartedAt.UTC(), r.FinishedAt.UTC()
}

// problem is what is wrong with it, for which nothing of the text is repeated.
func (r Restored) problem() string {
	if r.Format != RestoredFormat {
		return "its format is not " + RestoredFormat
	}
	of := Result{
		Format: Format, Slot: r.Slot, Data: r.Data, ClusterID: r.SourceClusterID, Revision: r.Revision,
		Bytes: r.Bytes, SHA256: r.SHA256, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
	if problem := of.problem(); problem != "" {
		return problem
	}
	switch {
	case r.NewRevision < r.Revision:
		return "its new revision is below that of the snapshot"
	case !isVersion(r.ClusterVersion) || !isVersion(r.StorageVersion):
		return "its versions are none"
	case !isID(r.ClusterID) || !isID(r.MemberID):
		return "its new IDs are none"
	}
	return ""
}

// isVersion reports whether a text is empty, or one that etcd writes into its database.
func isVersion(text string) bool { return text == "" || version.MatchString(text) }

var version = regexp.MustCompile(`^\d{1,3}(\.\d{1,3}){2}$`)

// isID reports whether a text is an ID of etcd, which is never 0.
func isID(text string) bool { return clusterID.MatchString(text) && text != "0000000000000000" }
