//go:build !race

package confinedtest

// RaceDetector is whether the tests run under the race detector, which takes memory of its own.
const RaceDetector = false
