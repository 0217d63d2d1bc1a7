package remote

import (
	"cmp"

	"quorate.dev/quorate/gitsource/pack"
)

// Limits limit what a server may send. Zero fields default to DefaultLimits.
type Limits struct {
	// RefsBytes limits the list of branches and tags, which a server sends first. In memory, the list takes several
	// times that size.
	RefsBytes int64
	// PackBytes limits the compressed size of the pack that a server sends for one revision. Packs are kept in a
	// temporary file unless they are small.
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
