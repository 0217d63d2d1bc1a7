//go:build unix

package disk

import "golang.org/x/sys/unix"

// notThrough keeps an open call from following a link, and from waiting for the other end of a pipe.
const notThrough = unix.O_NOFOLLOW | unix.O_NONBLOCK
