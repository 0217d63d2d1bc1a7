package confined

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const testReacher = "quorate-test-reacher"

func init() { ServeReaching(testReacher, func(json.RawMessage) {}, reachOut) }

// reachOut does what the task requests, in a process that may use files and the network.
func reachOut(parent *Parent, work json.RawMessage) {
	var what string
	if err := json.Unmarshal(work, &what); err != nil {
		panic(err)
	}
	switch what {
	case "open sockets":
		parent.Tell(socketsMade())
	case "take memory":
		takeMemory(work)
	case "take time":
		takeTime(work)
	}
}

// TestRunReachingIsResourceLimited checks that a process started by RunReaching is limited like a process started by
// Run, and that the error names the exceeded limit.
func TestRunReachingIsResourceLimited(t *testing.T) {
	for what, want := range map[string]string{
		"take memory": "needs more than 96 MiB of memory",
		"take time":   "needs more than 1s of CPU time",
	} {
		limits := Limits{Memory: 96 << 20, CPU: time.Second, LineBytes: 1 << 10}
		err := RunReaching(t.Context(), testReacher, what, limits, Reach{}, nil, func([]byte) (any, bool, error) { return nil, false, nil })
		if exceeded, ok := errors.AsType[Exceeded](err); !ok || !strings.HasPrefix(string(exceeded), want) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

// socketsMade returns the kinds of sockets that can be created.
func socketsMade() []string {
	made := []string{}
	try := func(name string, family, kind, protocol int) {
		if fd, err := unix.Socket(family, kind, protocol); err == nil {
			made = append(made, name)
			_ = unix.Close(fd)
		}
	}
	try("TCP", unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	try("UDP", unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	try("names of interfaces", unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	try("raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	try("raw IPv6", unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
	try("packets", unix.AF_INET, unix.SOCK_PACKET, 0)
	try("all packets", unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	try("local", unix.AF_UNIX, unix.SOCK_STREAM, 0)
	for protocol := 1; protocol < 23; protocol++ {
		try(fmt.Sprintf("netlink %d", protocol), unix.AF_NETLINK, unix.SOCK_RAW, protocol)
	}
	return made
}

// TestOnlyOutgoingSocketsAreAllowed checks that a process can create only sockets for outgoing connections, and the
// socket that returns the names of network interfaces.
func TestOnlyOutgoingSocketsAreAllowed(t *testing.T) {
	for _, network := range []bool{true, false} {
		var made []string
		err := RunReaching(t.Context(), testReacher, "open sockets", roomy, Reach{Network: network}, nil, func(line []byte) (any, bool, error) {
			return nil, true, json.Unmarshal(line, &made)
		})
		want := []string{}
		if network {
			want = []string{"TCP", "UDP", "names of interfaces"}
		}
		if err != nil || !slices.Equal(made, want) {
			t.Errorf("network %v: it has %q, want %q, error %v", network, made, want, err)
		}
	}
}
