package boundedtext

import (
	"math/rand/v2"
	"testing"
)

// TestExcerptsIgnoreWriteBoundaries checks that the results of Head and Tail do not depend on how the text is split
// into writes.
func TestExcerptsIgnoreWriteBoundaries(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var head Head
		var tail Tail
		var all []byte
		for range chance.IntN(6) {
			part := make([]byte, chance.IntN(3*size))
			for i := range part {
				part[i] = byte(chance.Uint32())
			}
			all = append(all, part...)
			for _, w := range []interface{ Write([]byte) (int, error) }{&head, &tail} {
				if n, err := w.Write(part); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
		}
		if head.String() != string(all[:min(len(all), size)]) || tail.String() != string(all[max(0, len(all)-size):]) {
			t.Errorf("of %d bytes: %d and %d", len(all), len(head.String()), len(tail.String()))
		}
	}
}
