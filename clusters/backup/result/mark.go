package result

import (
	"errors"
	"fmt"
)

// MarkFormat is the format of the marks that are written here. One of another format is not read.
const MarkFormat = "quorate.dev/restored/v1"

// MaxMark is how long a mark may be. Names and URLs of members have no bound of their own.
const MaxMark = 64 << 10

// Mark is what lies beside a data directory that was restored once and for all: what was asked for,
// and what came of it.
type Mark struct {
	Format   string   `json:"format"`
	Asked    Asked    `json:"asked"`
	Restored Restored `json:"restored"`
}

// Asked is what a command line asks for. Two that are equal ask for the same.
type Asked struct {
	// From is the URL of the store, and Endpoint where that is, if not where its vendor has it.
	From     string `json:"from"`
	Endpoint string `json:"endpoint,omitempty"`
	// Cluster as NAMESPACE/NAME, and the Backup that was named, empty for the newest one.
	Cluster string `json:"cluster"`
	Backup  string `json:"backup,omitempty"`
	// Name, PeerURL, InitialCluster and Token of the member, and by how much its revision is raised.
	Name           string `json:"name"`
	PeerURL        string `json:"peerURL"`
	InitialCluster string `json:"initialCluster"`
	Token          string `json:"token"`
	RevisionBump   uint64 `json:"revisionBump"`
}

// ErrMark is a text that is no mark of a restore.
var ErrMark = errors.New("it is no mark of a restore")

// Encode writes the mark as one line.
func (m Mark) Encode() ([]byte, error) {
	m.Format, m.Restored.Format = MarkFormat, RestoredFormat
	m.Restored.utc()
	if problem := m.problem(); problem != "" {
		return nil, fmt.Errorf("write the mark of a restore: %s", problem)
	}
	line, err := encode(m, MaxMark)
	if err != nil {
		return nil, fmt.Errorf("write the mark of a restore: %w", err)
	}
	return line, nil
}

// ParseMark reads what Encode wrote, and takes nothing that it could not have written.
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

// problem is what is wrong with it, for which nothing of the text is repeated.
func (m Mark) problem() string {
	switch a := m.Asked; {
	case m.Format != MarkFormat:
		return "its format is not " + MarkFormat
	case a.From == "" || a.Cluster == "" || a.Name == "" || a.PeerURL == "" || a.InitialCluster == "" || a.Token == "":
		return "it does not say what was asked for"
	}
	return m.Restored.problem()
}
