//go:build race

package confined

// raceDetector is whether the tests run under the race detector, which takes memory of its own.
const raceDetector = true
