package result

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"quorate.dev/quorate/internal/printable"
)

// DrilledFormat is the format of written drill results. Results in other formats are rejected.
const DrilledFormat = "quorate.dev/drill-result/v1"

// Drilled is the result of a drill.
type Drilled struct {
	Format string `json:"format"`
	// Slot is the slot of the backup, and Data is the name of its file.
	Slot time.Time `json:"slot"`
	Data string    `json:"data"`
	// ClusterID is the cluster ID of the backed-up etcd, as 16 hexadecimal digits. Revision is the revision of the
	// snapshot.
	ClusterID string `json:"clusterID"`
	Revision  int64  `json:"revision"`
	// Bytes and SHA256 describe the snapshot as the member sent it.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// EtcdVersion is the version of the etcd that was started.
	EtcdVersion string    `json:"etcdVersion"`
	StartedAt   time.Time `json:"startedAt"`
	FinishedAt  time.Time `json:"finishedAt"`
	// FetchSeconds is the time taken to fetch and check the backup, RestoreSeconds to create a data directory from it,
	// and StartSeconds until etcd responded.
	FetchSeconds   float64 `json:"fetchSeconds"`
	RestoreSeconds float64 `json:"restoreSeconds"`
	StartSeconds   float64 `json:"startSeconds"`
	// Uncompared is the reason why the data could not be compared. It is empty if the data was compared and is the
	// same.
	Uncompared string `json:"uncompared,omitempty"`
}

// ErrDrilled is returned for text that is not a drill result.
var ErrDrilled = errors.New("not a drill result")

// Seconds returns the total duration.
func (r Drilled) Seconds() float64 { return r.FetchSeconds + r.RestoreSeconds + r.StartSeconds }

// Encode writes the result as one line. It truncates Uncompared if necessary.
func (r Drilled) Encode() ([]byte, error) {
	r.Format, r.Uncompared = DrilledFormat, printable.Short(r.Uncompared, maxUnproven)
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

// ParseDrilled parses the output of Encode. It rejects anything that Encode could not have written.
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

// etcdVersion matches MAJOR.MINOR.PATCH, optionally followed by a pre-release.
var etcdVersion = regexp.MustCompile(`^\d{1,3}(\.\d{1,3}){2}(-[0-9A-Za-z.-]{1,40})?$`)

// longest is the maximum plausible duration of a step of a drill, in seconds.
const longest = 7 * 24 * 60 * 60

// problem describes the first problem with r without repeating any of the text, or returns "".
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
		return "its etcd version is invalid"
	}
	for _, seconds := range []float64{r.FetchSeconds, r.RestoreSeconds, r.StartSeconds} {
		if !(seconds >= 0 && seconds < longest) {
			return "its duration is not a valid number of seconds"
		}
	}
	if len(r.Uncompared) > maxUnproven || r.Uncompared != printable.Line(r.Uncompared) {
		return "the reason for skipping the comparison is too long or not a printable line"
	}
	return ""
}
