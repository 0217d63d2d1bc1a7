package result

import (
	"errors"
	"fmt"
)

// MarkFormat is the format of written marks. Marks in other formats are rejected.
const MarkFormat = "quorate.dev/restored/v1"

// MaxMark is the maximum size of a mark, in bytes. Nothing else limits the length of members' names and URLs.
const MaxMark = 64 << 10

// Mark is stored next to a data directory that was restored with --once. It records the request and the result.
type Mark struct {
	Format   string   `json:"format"`
	Asked    Asked    `json:"asked"`
	Restored Restored `json:"restored"`
}

// Asked is the request made on the command line. Two requests are the same if their values are equal.
type Asked struct {
	// From is the URL of the store. Endpoint is set if the endpoint is not the vendor's default.
	From     string `json:"from"`
	Endpoint string `json:"endpoint,omitempty"`
	// Cluster is NAMESPACE/NAME. Backup is the requested backup, or empty for the newest.
	Cluster string `json:"cluster"`
	Backup  string `json:"backup,omitempty"`
	// Name, PeerURL, InitialCluster and Token describe the member. RevisionBump is the number added to its revision.
	Name           string `json:"name"`
	PeerURL        string `json:"peerURL"`
	InitialCluster string `json:"initialCluster"`
	Token          string `json:"token"`
	RevisionBump   uint64 `json:"revisionBump"`
}

// ErrMark is returned for text that is not the mark of a restore.
var ErrMark = errors.New("not a restore marker")

// Encode writes the mark as one line.
func (m Mark) Encode() ([]byte, error) {
	m.Format, m.Restored.Format = MarkFormat, RestoredFormat
	m.Restored.utc()
	if problem := m.problem(); problem != "" {
		return nil, fmt.Errorf("write the restore marker: %s", problem)
	}
	line, err := encode(m, MaxMark)
	if err != nil {
		return nil, fmt.Errorf("write the restore marker: %w", err)
	}
	return line, nil
}

// ParseMark parses the output of Encode. It rejects anything that Encode could not have written.
func ParseMark(text string) (Mark, error) {
	var m Mark
	problem := decode(text, MaxMark, &m)
	if problem == "" {
		m.Restored.utc()
		problem = m.problem()
	}
	if problem != "" {
		return Mark{}, fmt.Errorf("%w: %s", ErrMark, problem)
	}
	return m, nil
}

// problem describes the first problem with m without repeating any of the text, or returns "".
func (m Mark) problem() string {
	switch a := m.Asked; {
	case m.Format != MarkFormat:
		return "its format is not " + MarkFormat
	case a.From == "" || a.Cluster == "" || a.Name == "" || a.PeerURL == "" || a.InitialCluster == "" || a.Token == "":
		return "it does not contain the request"
	}
	return m.Restored.problem()
}
