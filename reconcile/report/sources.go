package report

import (
	"fmt"
	"strings"
	"time"

	"quorate.dev/quorate/internal/printable"
)

// Source is one of several sources, at the revision that was read.
type Source struct {
	// Source is the source as given by the user.
	Source string `json:"source"`
	// Revision is the revision that was read; empty if it could not be read.
	Revision string `json:"revision,omitempty"`
	// Signer is the signer of the revision, if signatures are verified.
	Signer string `json:"signer,omitempty"`
}

// Fetch is the result of reading one source.
type Fetch struct {
	// Source is the source as given by the user, and Revision is the revision that was read, or empty.
	Source, Revision string
	// Committed is the commit time of the revision, or zero if it is unknown.
	Committed time.Time
	// At is when the source was read, or when reading it failed.
	At time.Time
	// Failed is set if the source could not be read or was refused.
	Failed bool
}

// writeRevisions writes the revision of each source.
func writeRevisions(b *strings.Builder, r Report) {
	if len(r.Sources) > 0 {
		for _, s := range r.Sources {
			if s.Revision == "" {
				continue // the error gives the reason
			}
			line := fmt.Sprintf("revision %s of %s", s.Revision, s.Source)
			if s.Signer != "" {
				line += ", signed by " + s.Signer
			}
			fmt.Fprintln(b, printable.Line(line))
		}
		return
	}
	if r.Revision != "" {
		fmt.Fprintf(b, "revision %s\n", printable.Line(r.Revision))
	}
	if r.Signer != "" {
		fmt.Fprintf(b, "signed by %s\n", printable.Line(r.Signer))
	}
}
