package result

import (
	"errors"
	"fmt"
	"time"
)

// RecoveredFormat is the format of written recovery results. Results in other formats are rejected.
const RecoveredFormat = "quorate.dev/recovery-result/v1"

// Recovered is the result of recovering a data directory after a cluster has lost its majority.
type Recovered struct {
	Format string `json:"format"`
	// LostClusterID and LostMemberID identify the surviving member, as 16 hexadecimal digits each. Term and Index are
	// the position at which its log ends.
	LostClusterID string `json:"lostClusterID"`
	LostMemberID  string `json:"lostMemberID"`
	Term          uint64 `json:"term"`
	Index         uint64 `json:"index"`
	// Revision is the revision of the data. NewRevision is the raised revision at which etcd starts. No client can have
	// seen it before.
	Revision    int64 `json:"revision"`
	NewRevision int64 `json:"newRevision"`
	// StartedAt and FinishedAt are the times of the recovery.
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	// Suspect is set if etcd had found that members held different data.
	Suspect bool `json:"suspect"`
	// ClusterID and MemberID are etcd's new IDs, as 16 hexadecimal digits each.
	ClusterID string `json:"clusterID"`
	MemberID  string `json:"memberID"`
}

// ErrRecovered is returned for text that is not a recovery result.
var ErrRecovered = errors.New("not a recovery result")

// Encode writes the result as one line.
func (r Recovered) Encode() ([]byte, error) {
	r.Format = RecoveredFormat
	r.utc()
	if problem := r.problem(); problem != "" {
		return nil, fmt.Errorf("write the result of a recovery: %s", problem)
	}
	line, err := encode(r, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("write the result of a recovery: %w", err)
	}
	return line, nil
}

// ParseRecovered parses the output of Encode. It rejects anything that Encode could not have written.
func ParseRecovered(text string) (Recovered, error) {
	var r Recovered
	problem := decode(text, MaxBytes, &r)
	if problem == "" {
		r.utc()
		problem = r.problem()
	}
	if problem != "" {
		return Recovered{}, fmt.Errorf("%w: %s", ErrRecovered, problem)
	}
	return r, nil
}

func (r *Recovered) utc() { r.StartedAt, r.FinishedAt = r.StartedAt.UTC(), r.FinishedAt.UTC() }

// problem describes the first problem with r without repeating any of the text, or returns "".
func (r Recovered) problem() string {
	switch {
	case r.Format != RecoveredFormat:
		return "its format is not " + RecoveredFormat
	case !isID(r.LostClusterID) || !isID(r.LostMemberID) || !isID(r.ClusterID) || !isID(r.MemberID):
		return "its IDs are invalid"
	case r.LostClusterID == r.ClusterID:
		return "its new cluster ID is the ID of the lost cluster"
	case r.Term == 0 || r.Index == 0:
		return "the end of the log is missing"
	case r.Revision < 1 || r.NewRevision < r.Revision:
		return "its revisions are invalid"
	case !isMoment(r.StartedAt) || !isMoment(r.FinishedAt) || r.FinishedAt.Before(r.StartedAt):
		return "its times are invalid"
	}
	return ""
}
