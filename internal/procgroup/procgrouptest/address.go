// Package procgrouptest contains helpers for tests that start servers.
package procgrouptest

import (
	"fmt"
	"math/rand/v2"
)

// Address returns HOST:PORT for a server that has not started yet. The host is a random loopback address. The port
// cannot be taken by an outgoing connection before the server listens, because connections to loopback addresses come
// from 127.0.0.1.
func Address() string {
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254), 12379)
}
