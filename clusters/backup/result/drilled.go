package result

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"quorate.dev/quorate/visible"
)

// DrilledFormat is the format of the results of drills that are written here. One of another format is
// not read.
const DrilledFormat = "quorate.dev/drill-result/v1"

// Drilled is what is known of a backup that was restored for practice.
type Drilled struct {
	Format string `json:"format"`
	// Slot of the backup, and Data, the name of its file.
	Slot time.Time `json:"slot"`
	Data string    `json:"data"`
	// ClusterID of the etcd that was backed up, as 16 hexadecimal digits, and Revision of the snapshot.
	ClusterID string `json:"clusterID"`
	Revision  int64  `json:"revision"`
	// Bytes and SHA256 of the snapshot, as the member sent it.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// EtcdVersion of the etcd that was started.
	EtcdVersion string    `json:"etcdVersion"`
	StartedAt   time.Time `json:"startedAt"`
	FinishedAt  time.Time `json:"finishedAt"`
	// Seconds for fetching and checking the backup, making a data directory of it, and until etcd answered.
	FetchSeconds   float64 `json:"fetchSeconds"`
	RestoreSeconds float64 `json:"restoreSeconds"`
	StartSeconds   float64 `json:"startSeconds"`
	// Uncompared says why the data could not be compared; empty if they were, and are the same.
	Uncompared string `json:"uncompared,omitempty"`
}

// ErrDrilled is a text that is no result of a drill.
var ErrDrilled = errors.New("it is no result of a drill")

// Seconds that all of it took.
func (r Drilled) Seconds() float64 { return r.FetchSeconds + r.RestoreSeconds + r.StartSeconds }

// Encode writes the result as one line. What is too long of Uncompared is cut.
func (r Drilled) Encode() ([]byte, error) {
	r.Format, r.Uncompared = DrilledFormat, visible.Short(r.Uncompared, maxUnproven)
	r.utc()
	if problem := r.problem(); problem != "" {
		return nil, fmt.Errorf("write the result of a drill: %s", problem)
	}
	line, err := encode(r, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("write the result of a drill: %w", err)
	}
	return line, nil
}

// ParseDrilled reads what Encode wrote, and takes nothing that it could not have written.
func ParseDrilled(text string) (Drilled, error) {
	var r Drilled
	problem := decode(text, MaxBytes, &r)
	if problem == "" {
		r.utc()
		problem = r.problem()
	}
	if problem != "" {
		return Drilled{}, fmt.Errorf("%w: %s", ErrDrilled, problem)
	}
	return r, nil
}

func (r *Drilled) utc() {
	r.Slot, r.StartedAt, r.FinishedAt = r.Slot.UTC(), r.StartedAt.UTC(), r.FinishedAt.UTC()
}

// etcdVersion is MAJOR.MINOR.PATCH, and what may follow that in a pre-release.
var etcdVersion = regexp.MustCompile(`^\d{1,3}(\.\d{1,3}){2}(-[0-9A-Za-z.-]{1,40})?$`)

// longest is more seconds than a step of a drill may take.
const longest = 7 * 24 * 60 * 60

// problem is what is wrong with it, for which nothing of the text is repeated.
func (r Drilled) problem() string {
	if r.Format != DrilledFormat {
		return "its format is not " + DrilledFormat
	}
	of := Result{
		Format: Format, Slot: r.Slot, Data: r.Data, ClusterID: r.ClusterID, Revision: r.Revision,
		Bytes: r.Bytes, SHA256: r.SHA256, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
	if problem := of.problem(); problem != "" {
		return problem
	}
	if !etcdVersion.MatchString(r.EtcdVersion) {
		return "its version of etcd is none"
	}
	for _, seconds := range []float64{r.FetchSeconds, r.RestoreSeconds, r.StartSeconds} {
		if !(seconds >= 0 && seconds < longest) {
			return "how long it took is no number of seconds"
		}
	}
	if len(r.Uncompared) > maxUnproven || r.Uncompared != visible.Line(r.Uncompared) {
		return "why it was not compared is too long, or no visible line"
	}
	return ""
}
