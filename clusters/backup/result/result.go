// Package result defines the results that backups, drills, restores and recoveries report in the status of their pods.
// The flag --result writes a result, and a pass reads it.
package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// Format is the format of written results. Results in other formats are rejected.
const Format = "quorate.dev/backup-result/v1"

// MaxBytes is the maximum size of a result. It is Kubernetes' limit for a container's termination message.
const MaxBytes = 4096

// maxUnproven is the maximum length of the reason in Unproven, in bytes.
const maxUnproven = 500

// Result describes a backup that was just stored or that already existed.
type Result struct {
	Format string `json:"format"`
	// Slot is the time for which the backup was taken. Data is the name of its file.
	Slot time.Time `json:"slot"`
	Data string    `json:"data"`
	// ClusterID is etcd's cluster ID, as 16 hexadecimal digits. Revision is the revision of the snapshot.
	ClusterID string `json:"clusterID"`
	Revision  int64  `json:"revision"`
	// Bytes and SHA256 describe the snapshot as the member sent it.
	Bytes      int64     `json:"bytes"`
	SHA256     string    `json:"sha256"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	// Suspect is set if etcd had found that members held different data.
	Suspect bool `json:"suspect"`
	// Unproven is the reason why the snapshot could not be proven by a quorum of members. It is empty if it was proven.
	Unproven string `json:"unproven,omitempty"`
}

// ErrResult is returned for text that is not a backup result.
var ErrResult = errors.New("not a backup result")

// Encode writes the result as one line. It truncates Unproven if necessary.
func (r Result) Encode() ([]byte, error) {
	r.Format, r.Unproven = Format, printable.Short(r.Unproven, maxUnproven)
	r.Slot, r.StartedAt, r.FinishedAt = r.Slot.UTC(), r.StartedAt.UTC(), r.FinishedAt.UTC()
	if problem := r.problem(); problem != "" {
		return nil, fmt.Errorf("write the result of a backup: %s", problem)
	}
	line, err := encode(r, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("write the result of a backup: %w", err)
	}
	return line, nil
}

// encode returns value as a single line. It returns an error if the line is longer than most bytes.
func encode(value any, most int) ([]byte, error) {
	line := &bytes.Buffer{}
	encoder := json.NewEncoder(line)
	encoder.SetEscapeHTML(false) // the text is not part of an HTML page, and escaping would make it longer
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	if line.Len() > most {
		return nil, fmt.Errorf("its size is %d bytes, but the limit is %d", line.Len(), most)
	}
	return line.Bytes(), nil
}

// ParseResult parses the output of Encode. The text comes from a pod's status, which can be forged by anyone who may
// change pods, so ParseResult rejects anything that Encode could not have written.
func ParseResult(text string) (Result, error) {
	var r Result
	if problem := decode(text, MaxBytes, &r); problem != "" {
		return Result{}, fmt.Errorf("%w: %s", ErrResult, problem)
	}
	r.Slot, r.StartedAt, r.FinishedAt = r.Slot.UTC(), r.StartedAt.UTC(), r.FinishedAt.UTC()
	if problem := r.problem(); problem != "" {
		return Result{}, fmt.Errorf("%w: %s", ErrResult, problem)
	}
	return r, nil
}

// decode decodes the output of encode. If text is anything else, it returns the problem.
func decode(text string, most int, into any) (problem string) {
	if len(text) > most {
		return fmt.Sprintf("it is longer than %d bytes", most)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return printable.Line(err.Error())
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return "it is followed by more data"
	}
	return ""
}

var (
	// dataName matches the output of store.Manifest.NewDataName. The pattern is repeated here because package store
	// imports the libraries for object stores.
	dataName  = regexp.MustCompile(`^(\d{8}t\d{6}z)-\d{1,19}-[0-9a-f]{8}\.db(?:\.zst)?(?:\.age)?$`)
	clusterID = regexp.MustCompile(`^[0-9a-f]{16}$`)
	sha256    = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// maxSnapshot is larger than any possible snapshot, in bytes.
const maxSnapshot = 1 << 50

// problem describes the first problem with r without repeating any of the text, or returns "".
func (r Result) problem() string {
	name := dataName.FindStringSubmatch(r.Data)
	switch {
	case r.Format != Format:
		return "its format is not " + Format
	case !isMoment(r.Slot) || !isMoment(r.StartedAt) || !isMoment(r.FinishedAt):
		return "a time is missing or implausible"
	case r.Slot.Nanosecond() != 0:
		return "its slot is not a whole second"
	case name == nil || name[1] != r.Slot.Format(decide.SlotLayout):
		return "the name of its data does not match its slot"
	case !clusterID.MatchString(r.ClusterID):
		return "its cluster ID is invalid"
	case r.Revision < 0:
		return "its revision is negative"
	case r.Bytes <= 0 || r.Bytes > maxSnapshot || !sha256.MatchString(r.SHA256):
		return "its size or checksum is invalid"
	case len(r.Unproven) > maxUnproven || r.Unproven != printable.Line(r.Unproven):
		return "the reason why it is unproven is too long or not a printable line"
	}
	return ""
}

// isMoment reports whether a time is plausible for a backup and can be stored in a custom resource.
func isMoment(t time.Time) bool { return t.Year() >= 2000 && t.Year() <= 9999 }
