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

// RereadFormat is the format of the results of reading stored backups again that are written here. One of another
// format is not read.
const RereadFormat = "quorate.dev/reread-result/v1"

// MaxDamaged is how many damaged backups are named.
const MaxDamaged = 16

// Reread is what is known after stored backups were read again.
type Reread struct {
	Format string    `json:"format"`
	At     time.Time `json:"at"`
	// Backups is how many good ones there are. Read is how many were read again, and Bytes how many bytes of them.
	Backups int64 `json:"backups"`
	Read    int64 `json:"read"`
	Bytes   int64 `json:"bytes"`
	// Oldest is since when the one of them was not read that was not read for the longest time; zero if there is none.
	Oldest time.Time `json:"oldest,omitzero"`
	// Damaged are the newest that there are which were found damaged, now or earlier, each by BackupName, and the
	// newest first. More is how many there are besides.
	Damaged []string `json:"damaged,omitempty"`
	More    int64    `json:"more,omitempty"`
	// Unread says why one could not be read that was due; empty if there is none.
	Unread string `json:"unread,omitempty"`
}

// ErrReread is a text that is no result of reading backups again.
var ErrReread = errors.New("it is no result of reading backups again")

// Encode writes the result as one line. What is too long of Unread is cut.
func (r Reread) Encode() ([]byte, error) {
	r.Format, r.Unread = RereadFormat, visible.Short(r.Unread, maxUnproven)
	// Whoever may write to the store can name one as of any time: that is no reason to say nothing.
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

// ParseReread reads what Encode wrote, and takes nothing that it could not have written.
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

// maxBackups is more backups than a store can have of a cluster.
const maxBackups = 1 << 30

var backupName = regexp.MustCompile(`^(\d{8}t\d{6}z)( of [0-9a-f]{16})?$`)

// BackupName names a backup among all that a store has of clusters of one namespace and name: several Kubernetes
// clusters may share it.
func BackupName(slotID, clusterID string) string { return slotID + " of " + clusterID }

// IsBackupName reports whether a text names a backup: by its slot, and by the ID of the cluster it is of, which earlier
// versions have left out.
func IsBackupName(text string) bool {
	parts := backupName.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	slot, err := time.Parse(decide.SlotLayout, parts[1])
	return err == nil && isMoment(slot)
}

// problem is what is wrong with it, for which nothing of the text is repeated.
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
