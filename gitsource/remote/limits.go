package remote

import (
	"cmp"

	"quorate.dev/quorate/gitsource/pack"
)

// Limits limit what a server may send. A zero field means its value in DefaultLimits.
type Limits struct {
	// RefsBytes limits the list of branches and tags, which a server sends first. In memory, it takes several times
	// that size.
	RefsBytes int64
	// PackBytes limits what a server sends for one revision, compressed as it crosses the network. All but small packs
	// are kept in a temporary file.
	PackBytes int64
	Pack      pack.Limits
}

// DefaultLimits are far above the needs of a repository that declares clusters.
var DefaultLimits = Limits{RefsBytes: 32 << 20, PackBytes: 512 << 20, Pack: pack.DefaultLimits}

// OrDefault replaces zero fields with defaults.
func (l Limits) OrDefault() Limits {
	return Limits{
		RefsBytes: cmp.Or(l.RefsBytes, DefaultLimits.RefsBytes),
		PackBytes: cmp.Or(l.PackBytes, DefaultLimits.PackBytes),
		Pack:      l.Pack.OrDefault(),
	}
}
