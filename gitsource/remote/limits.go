package remote

import (
	"cmp"

	"quorate.dev/quorate/gitsource/pack"
)

// Limits on what a server may send. One that is zero is that of DefaultLimits.
type Limits struct {
	// RefsBytes of the list of branches and tags, which a server sends first. In memory it takes
	// several times as much.
	RefsBytes int64
	// PackBytes of what a server sends for one revision, compressed as it crosses the network. More
	// than a little of it is kept in a temporary file.
	PackBytes int64
	Pack      pack.Limits
}

// DefaultLimits are far over what a repository that declares clusters needs.
var DefaultLimits = Limits{RefsBytes: 32 << 20, PackBytes: 512 << 20, Pack: pack.DefaultLimits}

// OrDefault fills in what is zero.
func (l Limits) OrDefault() Limits {
	return Limits{
		RefsBytes: cmp.Or(l.RefsBytes, DefaultLimits.RefsBytes),
		PackBytes: cmp.Or(l.PackBytes, DefaultLimits.PackBytes),
		Pack:      l.Pack.OrDefault(),
	}
}
