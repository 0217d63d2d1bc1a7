// Package childtest has what tests need that start servers of their own.
package childtest

import (
	"fmt"
	"math/rand/v2"
)

// Address is HOST:PORT for a server that is yet to start: an address of loopback that, by chance, is its
// own, with a port that no connection goes out from. A port that was found free may be taken by the time
// the server listens; this one is not, for connections to loopback come from 127.0.0.1.
func Address() string {
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254), 12379)
}
