//go:build !race

package confinedtest

// RaceDetector reports whether the tests run under the race detector, which needs additional memory.
const RaceDetector = false
