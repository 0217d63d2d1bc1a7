package report

import (
	"fmt"
	"strings"
	"time"

	"quorate.dev/quorate/visible"
)

// Source is one of several sources, as of the revision that was read.
type Source struct {
	// Source as it was given.
	Source string `json:"source"`
	// Revision that was read; empty if it could not be.
	Revision string `json:"revision,omitempty"`
	// Signer of the revision, where signatures are verified.
	Signer string `json:"signer,omitempty"`
}

// Fetch is what became of reading one source.
type Fetch struct {
	// Source as it was given, and Revision that was read; empty if none was.
	Source, Revision string
	// Committed is when that was committed, as it says itself; zero if that is not known.
	Committed time.Time
	// At is when it was read, or when that failed.
	At time.Time
	// Failed: it could not be read, or what was read is refused.
	Failed bool
}

// writeRevisions says what was read: of several sources, which revision is whose.
func writeRevisions(b *strings.Builder, r Report) {
	if len(r.Sources) > 0 {
		for _, s := range r.Sources {
			if s.Revision == "" {
				continue // the error says why
			}
			line := fmt.Sprintf("revision %s of %s", s.Revision, s.Source)
			if s.Signer != "" {
				line += ", signed by " + s.Signer
			}
			fmt.Fprintln(b, visible.Line(line))
		}
		return
	}
	if r.Revision != "" {
		fmt.Fprintf(b, "revision %s\n", visible.Line(r.Revision))
	}
	if r.Signer != "" {
		fmt.Fprintf(b, "signed by %s\n", visible.Line(r.Signer))
	}
}
