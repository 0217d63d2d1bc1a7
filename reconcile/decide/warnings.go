package decide

import "fmt"

// CertificateWarnings say what only a person can mend about certificates, besides their age.
func (s State) CertificateWarnings() []string {
	var warnings []string
	for _, c := range s.Certificates {
		if c.CA && c.Weak != "" {
			warnings = append(warnings, fmt.Sprintf("the key of the CA, %s, is weak (%s); have a new one made: see Certificates in docs/operations.md", c, c.Weak))
		}
	}
	if s.ClientIsRoot {
		warnings = append(warnings, fmt.Sprintf("authentication is on in etcd, and applications are its superuser by Secret %s-client-tls; give the user %s-client "+
			"the rights that they need, and delete the Secret: see Certificates in docs/operations.md", s.Name, s.Name))
	}
	return warnings
}
