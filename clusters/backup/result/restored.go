package result

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// RestoredFormat is the format of written restore results. Results in other formats are rejected.
const RestoredFormat = "quorate.dev/restore-result/v1"

// Restored is the result of restoring a data directory from a stored backup.
type Restored struct {
	Format string `json:"format"`
	// Slot is the slot of the backup, and Data is the name of its file.
	Slot time.Time `json:"slot"`
	Data string    `json:"data"`
	// SourceClusterID is the cluster ID of the backed-up etcd, as 16 hexadecimal digits. Revision is the revision of
	// the snapshot.
	SourceClusterID string `json:"sourceClusterID"`
	Revision        int64  `json:"revision"`
	// NewRevision is the raised revision at which etcd starts. No client can have seen it before.
	NewRevision int64 `json:"newRevision"`
	// Bytes and SHA256 describe the snapshot as the member sent it.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// ClusterVersion and StorageVersion are the versions of the data, as MAJOR.MINOR.0, or empty if unknown.
	ClusterVersion string `json:"clusterVersion,omitempty"`
	StorageVersion string `json:"storageVersion,omitempty"`
	// StartedAt and FinishedAt are the times of the restore, not of the backup.
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	// Suspect is set if etcd had found that members held different data.
	Suspect bool `json:"suspect"`
	// ClusterID and MemberID are etcd's new IDs, as 16 hexadecimal digits each.
	ClusterID string `json:"clusterID"`
	MemberID  string `json:"memberID"`
}

// ErrRestored is returned for text that is not a restore result.
var ErrRestored = errors.New("not a restore result")

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

// ParseRestored parses the output of Encode. It rejects anything that Encode could not have written.
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

// problem describes the first problem with r without repeating any of the text, or returns "".
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
		return "its new revision is below the revision of the snapshot"
	case !isVersion(r.ClusterVersion) || !isVersion(r.StorageVersion):
		return "its versions are invalid"
	case !isID(r.ClusterID) || !isID(r.MemberID):
		return "its new IDs are invalid"
	}
	return ""
}

// isVersion reports whether text is empty or a version in the format that etcd writes to its database.
func isVersion(text string) bool { return text == "" || version.MatchString(text) }

var version = regexp.MustCompile(`^\d{1,3}(\.\d{1,3}){2}$`)

// isID reports whether text is an etcd ID, which is never 0.
func isID(text string) bool { return clusterID.MatchString(text) && text != "0000000000000000" }
