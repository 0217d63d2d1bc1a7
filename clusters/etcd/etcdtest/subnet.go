// Package etcdtest provides addresses for tests that run etcd.
package etcdtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
)

// Subnet reserves a random loopback subnet for the duration of a test, and returns the first three bytes of its
// addresses, such as "127.1.2". Its last address is in use. Without the reservation, tests that run at the same time,
// even in different processes, could reach each other's servers.
func Subnet(t testing.TB) string {
	t.Helper()
	for {
		subnet := fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(256))
		reserved, err := net.Listen("tcp", subnet+".254:2379")
		if err == nil {
			t.Cleanup(func() { _ = reserved.Close() })
			return subnet
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Skipf("no loopback addresses to listen on: %v", err)
		}
	}
}
