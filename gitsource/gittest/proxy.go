package gittest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// Proxy is an HTTP proxy that connects to the same address for every requested host.
type Proxy struct {
	*httptest.Server
	Asked atomic.Int32
	// Password is the password that the proxy requires. If Status is not zero, the proxy responds with that status to
	// requests with the right password.
	Password string
	Status   int
	to       string
}

// NewProxy starts a proxy that connects to the given address, regardless of the requested host.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	p := &Proxy{to: to}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	p.Asked.Add(1)
	given := &http.Request{Header: http.Header{"Authorization": request.Header["Proxy-Authorization"]}}
	if _, password, _ := given.BasicAuth(); password != p.Password {
		http.Error(w, "\x1b[31mthe proxy's words", http.StatusProxyAuthRequired)
		return
	}
	if p.Status != 0 {
		http.Error(w, "\x1b[31mthe proxy's words", p.Status)
		return
	}
	there, err := net.Dial("tcp", p.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	pipe(here, there, buffered.Reader)
}

// pipe copies data between two connections until one of them ends.
func pipe(here, there net.Conn, buffered *bufio.Reader) {
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(there, buffered); done <- struct{}{} }()
	go func() { _, _ = io.Copy(here, there); done <- struct{}{} }()
	<-done
}

// NewSOCKS starts a SOCKS 5 proxy that requires a password and connects to the given address, regardless of the
// requested host.
func NewSOCKS(t testing.TB, to string) (address string) {
	t.Helper()
	l := Listen(t)
	go func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer here.Close()
				if err := socks(here, to); err != nil {
					t.Logf("SOCKS: %v", err)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func socks(here net.Conn, to string) error {
	r := bufio.NewReader(here)
	read := func(n int) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return make([]byte, n)
		}
		return b
	}
	if methods := read(int(read(2)[1])); !bytes.Contains(methods, []byte{2}) {
		_, err := here.Write([]byte{5, 0xff})
		return err
	}
	if _, err := here.Write([]byte{5, 2}); err != nil {
		return err
	}
	name := read(int(read(2)[1]))
	password := read(int(read(1)[0]))
	if string(name) != "x" || string(password) != Secret {
		_, err := here.Write([]byte{1, 1})
		return err
	}
	if _, err := here.Write([]byte{1, 0}); err != nil {
		return err
	}
	if kind := read(4)[3]; kind != 3 {
		return fmt.Errorf("address of kind %d, want a name", kind)
	}
	read(int(read(1)[0]) + 2)
	there, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer there.Close()
	if _, err := here.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	pipe(here, there, r)
	return nil
}
