//go:build !linux

package manifests

import "testing"

// reportPeaks does nothing on this platform.
func reportPeaks(*testing.B) {}
