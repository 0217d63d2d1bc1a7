//go:build linux

package machine

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// OpenNetwork opens the machine's network namespace. The namespace exists at least until the file is closed.
func (m *Machine) OpenNetwork() (*os.File, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.PID))
	if err != nil {
		return nil, fmt.Errorf("open the machine's network: %w", err)
	}
	return file, nil
}

// EnterNetwork moves the calling thread into the machine's network. The caller must have locked the thread.
func (m *Machine) EnterNetwork() error {
	network, err := m.OpenNetwork()
	if err != nil {
		return err
	}
	defer network.Close()
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the machine's network: %w", err)
	}
	return nil
}

// InNetwork calls f on a thread in the machine's network. Processes that f starts also run in this network.
func (m *Machine) InNetwork(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := m.EnterNetwork(); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

func (n *Network) configure() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("enable forwarding between pods: %w", err)
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: n.Bridge}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("create bridge %s: %w", n.Bridge, err)
	}
	for _, address := range n.Addresses {
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return fmt.Errorf("parse address %s: %w", address, err)
		}
		if err := netlink.AddrAdd(bridge, parsed); err != nil {
			return fmt.Errorf("assign address %s to bridge %s: %w", address, n.Bridge, err)
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("bring up bridge %s: %w", n.Bridge, err)
	}
	everywhere := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Index, Dst: everywhere,
		Scope: netlink.SCOPE_LINK}); err != nil {
		return fmt.Errorf("route everything to bridge %s: %w", n.Bridge, err)
	}
	return nil
}

// RemoveLinks deletes the links in the machine's network that lead to single addresses in a subnet. After a node has
// lost power, the kernel may take a while to delete the networks of its pods. Until then, their links would receive the
// traffic for new pods with the same addresses.
func (m *Machine) RemoveLinks(subnet string) error {
	_, pods, err := net.ParseCIDR(subnet)
	if err != nil {
		return fmt.Errorf("parse subnet %s: %w", subnet, err)
	}
	return m.InNetwork(func() error {
		routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
		if err != nil {
			return fmt.Errorf("list the routes to pods: %w", err)
		}
		for _, route := range routes {
			if route.Dst == nil || !pods.Contains(route.Dst.IP) {
				continue
			}
			link, err := netlink.LinkByIndex(route.LinkIndex)
			if err == nil {
				err = netlink.LinkDel(link)
			}
			gone := netlink.LinkNotFoundError{}
			if err != nil && !errors.As(err, &gone) && !errors.Is(err, unix.ENODEV) {
				return fmt.Errorf("delete the link to %s: %w", route.Dst, err)
			}
		}
		return nil
	})
}

// forward accepts connections from the host's network on the listener with file descriptor 3, and forwards each of them
// to address in the machine's network.
func forward(address string) error {
	file := os.NewFile(3, "listener")
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("take over the listener: %w", err)
	}
	file.Close()
	go func() {
		for {
			outside, err := listener.Accept()
			if err != nil {
				slog.Error("accept a connection from the host", "error", err)
				return
			}
			go join(outside, address)
		}
	}()
	return nil
}

func join(outside net.Conn, address string) {
	defer outside.Close()
	inside, err := net.Dial("tcp", address)
	if err != nil {
		slog.Warn("forward a connection from the host", "error", err)
		return
	}
	defer inside.Close()
	var both sync.WaitGroup
	both.Go(func() { pipe(inside, outside) })
	both.Go(func() { pipe(outside, inside) })
	both.Wait()
}

// pipe copies data between connections until from reaches EOF, and then closes the write side of to.
func pipe(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite() // fails only if the peer has closed the whole connection
	}
}
