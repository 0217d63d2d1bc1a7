// Package procgrouptest contains helpers for tests that start servers.
package procgrouptest

import (
	"fmt"
	"math/rand/v2"
)

// Address returns HOST:PORT for a server that has not started yet: a random loopback address, and a port that is not
// used for outgoing connections. A port that was found to be free may be in use by the time the server listens. This
// port is not, because connections to loopback addresses come from 127.0.0.1.
func Address() string {
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254), 12379)
}
