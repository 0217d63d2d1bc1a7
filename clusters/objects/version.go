package objects

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// version of etcd. The major version is 3.
type version struct{ minor, patch int }

func parseVersion(text string) (version, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || parts[0] != "3" {
		return version{}, fmt.Errorf("read version %q: it is not of the form 3.MINOR.PATCH", text)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return version{}, fmt.Errorf("read version %q: %w", text, err)
	}
	patch, err := strconv.Atoi(parts[2])
	if err != nil {
		return version{}, fmt.Errorf("read version %q: %w", text, err)
	}
	return version{minor, patch}, nil
}

func (v version) String() string { return fmt.Sprintf("3.%d.%d", v.minor, v.patch) }

// atLeast reports whether v is other or newer.
func (v version) atLeast(other version) bool {
	return cmp.Or(cmp.Compare(v.minor, other.minor), cmp.Compare(v.patch, other.patch)) >= 0
}
