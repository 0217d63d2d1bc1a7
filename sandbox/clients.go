//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"

	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/pki"
)

// writeClientFiles writes the files that clients need: one kubeconfig for the host, one for inside the sandbox, and
// resolv.conf.
func (s *Sandbox) writeClientFiles(port int) error {
	store := s.certificates()
	authority, err := store.Authority()
	if err != nil {
		return err
	}
	admin, err := store.Client("admin", "quorate-sandbox:admin", "system:masters")
	if err != nil {
		return err
	}
	resolver := fmt.Sprintf("nameserver %s\nsearch svc.%[2]s %[2]s\noptions ndots:5\n", layout.ControlPlane,
		layout.ClusterDomain)
	outside := fmt.Sprintf("https://127.0.0.1:%d", port)
	return errors.Join(
		replaceFile(s.Kubeconfig(), []byte(pki.Kubeconfig(outside, authority, admin))),
		replaceFile(s.KubeconfigInside(), []byte(pki.Kubeconfig("https://"+layout.APIServer, authority, admin))),
		replaceFile(filepath.Join(s.Dir(), "resolv.conf"), []byte(resolver)),
	)
}
