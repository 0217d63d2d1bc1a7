package confined

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestMissingLandlockIsExplained checks that the reasons why Landlock is missing are distinguished, because different
// administrators must fix them.
func TestMissingLandlockIsExplained(t *testing.T) {
	for want, c := range map[string]struct {
		version int
		err     error
	}{
		"in use (ABI 6)": {6, nil},
		"missing: the kernel does not support it":                                 {-1, unix.ENOSYS},
		"missing: it is disabled in the kernel (lsm= on the kernel command line)": {-1, unix.EOPNOTSUPP},
		"missing: the container runtime forbids landlock_create_ruleset(2)":       {-1, unix.EPERM},
		"missing: input/output error":                                             {-1, unix.EIO},
	} {
		if got := describeLandlock(c.version, c.err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
