package pki

import (
	"encoding/base64"
	"fmt"
)

// Kubeconfig returns a kubeconfig for one client of one API server.
func Kubeconfig(server string, authority, client Pair) string {
	encode := func(pem string) string { return base64.StdEncoding.EncodeToString([]byte(pem)) }
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: sandbox
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: sandbox
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: sandbox
  context: {cluster: sandbox, user: sandbox}
current-context: sandbox
`, server, encode(authority.Certificate), encode(client.Certificate), encode(client.Key))
}
