package objects

import (
	"fmt"

	"quorate.dev/quorate/internal/etcdversion"
)

// declaredVersion parses a declared version, which must be a release of etcd 3.
func declaredVersion(text string) (etcdversion.Version, error) {
	v, err := etcdversion.Parse(text)
	if err != nil || v.Major != 3 || v.Pre != "" {
		return etcdversion.Version{}, fmt.Errorf("read version %q: it does not have the form 3.MINOR.PATCH", text)
	}
	return v, nil
}
