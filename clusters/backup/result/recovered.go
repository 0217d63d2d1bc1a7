package result

import (
	"errors"
	"fmt"
	"time"
)

// RecoveredFormat is the format of the results of recoveries that are written here. One of another
// format is not read.
const RecoveredFormat = "quorate.dev/recovery-result/v1"

// Recovered is what is known of a data directory that was made of what was left of a cluster.
type Recovered struct {
	Format string `json:"format"`
	// LostClusterID and LostMemberID are those of the data directory that was left, as 16 hexadecimal
	// digits, and Term and Index where its log ended.
	LostClusterID string `json:"lostClusterID"`
	LostMemberID  string `json:"lostMemberID"`
	Term          uint64 `json:"term"`
	Index         uint64 `json:"index"`
	// Revision of the data, and NewRevision that etcd starts at: raised, so that nobody has seen it.
	Revision    int64 `json:"revision"`
	NewRevision int64 `json:"newRevision"`
	// StartedAt and FinishedAt are when it was recovered.
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	// Suspect: etcd had found that members hold different data.
	Suspect bool `json:"suspect"`
	// ClusterID and MemberID that etcd has from now on, as 16 hexadecimal digits.
	ClusterID string `json:"clusterID"`
	MemberID  string `json:"memberID"`
}

// ErrRecovered is a text that is no result of a recovery.
var ErrRecovered = errors.New("it is no result of a recovery")

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

// ParseRecovered reads what Encode wrote, and takes nothing that it could not have written.
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

// problem is what is wrong with it, for which nothing of the text is repeated.
func (r Recovered) problem() string {
	switch {
	case r.Format != RecoveredFormat:
		return "its format is not " + RecoveredFormat
	case !isID(r.LostClusterID) || !isID(r.LostMemberID) || !isID(r.ClusterID) || !isID(r.MemberID):
		return "its IDs are none"
	case r.LostClusterID == r.ClusterID:
		return "its new cluster is the one that was lost"
	case r.Term == 0 || r.Index == 0:
		return "it does not say where the log ended"
	case r.Revision < 1 || r.NewRevision < r.Revision:
		return "its revisions are none"
	case !isMoment(r.StartedAt) || !isMoment(r.FinishedAt) || r.FinishedAt.Before(r.StartedAt):
		return "its times are none"
	}
	return ""
}
