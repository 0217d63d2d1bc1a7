package clusters

import (
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// holder identifies the holder of a lease by its host, its PID and a random part. The random part distinguishes
// processes that reuse a PID, and the parts of one process that act on different Kubernetes clusters.
type holder struct {
	Host   string
	PID    int
	Random string
}

// newHolder returns a unique holder for this process.
func newHolder() holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return holder{Host: host, PID: os.Getpid(), Random: rand.Text()[:10]}
}

// String returns the holder identity in the lease.
func (h holder) String() string { return fmt.Sprintf("%s/%d/%s", h.Host, h.PID, h.Random) }

// Words returns a description of the holder for messages.
func (h holder) Words() string { return fmt.Sprintf("process %d on %s", h.PID, h.Host) }

// parseHolder parses a holder identity. An identity that Quorate did not write is returned as the host.
func parseHolder(identity string) holder {
	parts := strings.SplitN(identity, "/", 3)
	if len(parts) != 3 {
		return holder{Host: identity}
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return holder{Host: identity}
	}
	return holder{Host: parts[0], PID: pid, Random: parts[2]}
}
