package result

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/visible"
)

// RereadFormat is the format of the reread results that are written. Results in other formats are rejected.
const RereadFormat = "quorate.dev/reread-result/v1"

// MaxDamaged is the maximum number of damaged backups that are named.
const MaxDamaged = 16

// Reread is the result of rereading stored backups.
type Reread struct {
	Format string    `json:"format"`
	At     time.Time `json:"at"`
	// Backups is the number of good backups. Read is the number that were reread, and Bytes their total size.
	Backups int64 `json:"backups"`
	Read    int64 `json:"read"`
	Bytes   int64 `json:"bytes"`
	// Oldest is when the least recently read good backup was last read, or zero without good backups.
	Oldest time.Time `json:"oldest,omitzero"`
	// Damaged lists the newest backups that were found damaged, now or earlier, by BackupName, the newest first. More
	// is the number of further ones.
	Damaged []string `json:"damaged,omitempty"`
	More    int64    `json:"more,omitempty"`
	// Unread is why a backup that was due could not be read, or "".
	Unread string `json:"unread,omitempty"`
}

// ErrReread is returned for a text that is not a reread result.
var ErrReread = errors.New("it is no result of reading backups again")

// Encode writes the result as one line. It truncates Unread if necessary.
func (r Reread) Encode() ([]byte, error) {
	r.Format, r.Unread = RereadFormat, visible.Short(r.Unread, maxUnproven)
	// Anyone with write access to the store can create a backup with any time; that must not suppress the result.
	r.Damaged = slices.DeleteFunc(slices.Clone(r.Damaged), func(id string) bool { return !IsBackupName(id) })
	if !isMoment(r.Oldest) {
		r.Oldest = time.Time{}
	}
	if more := len(r.Damaged) - MaxDamaged; more > 0 {
		r.Damaged, r.More = r.Damaged[:MaxDamaged], r.More+int64(more)
	}
	r.utc()
	if problem := r.problem(); problem != "" {
		return nil, fmt.Errorf("write the result of reading backups again: %s", problem)
	}
	line, err := encode(r, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("write the result of reading backups again: %w", err)
	}
	return line, nil
}

// ParseReread reads the output of Encode, and rejects anything that Encode could not have written.
func ParseReread(text string) (Reread, error) {
	var r Reread
	problem := decode(text, MaxBytes, &r)
	if problem == "" {
		r.utc()
		problem = r.problem()
	}
	if problem != "" {
		return Reread{}, fmt.Errorf("%w: %s", ErrReread, problem)
	}
	return r, nil
}

func (r *Reread) utc() { r.At, r.Oldest = r.At.UTC(), r.Oldest.UTC() }

// maxBackups is more than the number of backups of a cluster that a store can have.
const maxBackups = 1 << 30

var backupName = regexp.MustCompile(`^(\d{8}t\d{6}z)( of [0-9a-f]{16})?$`)

// BackupName names a backup among all those in a store of clusters with the same namespace and name. Several Kubernetes
// clusters may share a store.
func BackupName(slotID, clusterID string) string { return slotID + " of " + clusterID }

// IsBackupName reports whether text names a backup by its slot and cluster ID. Earlier versions omitted the ID.
func IsBackupName(text string) bool {
	parts := backupName.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	slot, err := time.Parse(decide.SlotLayout, parts[1])
	return err == nil && isMoment(slot)
}

// problem describes the first problem of r, without repeating any of the text.
func (r Reread) problem() string {
	switch {
	case r.Format != RereadFormat:
		return "its format is not " + RereadFormat
	case !isMoment(r.At) || !r.Oldest.IsZero() && (!isMoment(r.Oldest) || r.Backups == 0):
		return "a time is missing, or of another age"
	case !isCount(r.Backups) || !isCount(r.Read) || !isCount(r.More) || r.Bytes < 0 || r.Bytes > maxSnapshot:
		return "a number is none of backups, or of bytes"
	case len(r.Damaged) > MaxDamaged || r.More > 0 && len(r.Damaged) < MaxDamaged:
		return "it names another number of damaged backups than it should"
	case len(r.Unread) > maxUnproven || r.Unread != visible.Line(r.Unread):
		return "why one was not read is too long, or no visible line"
	}
	for i, id := range r.Damaged {
		if !IsBackupName(id) || i > 0 && id >= r.Damaged[i-1] {
			return "the names of damaged backups are none, or in no order"
		}
	}
	return ""
}

func isCount(n int64) bool { return n >= 0 && n <= maxBackups }
