package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Certificate is a certificate of the cluster and its validity period.
type Certificate struct {
	// Secret is the Secret that contains the certificate, and Key the key in that Secret.
	Secret string `json:"secret"`
	Key    string `json:"key"`
	// CA is true for the CA certificate, from which all others are issued.
	CA        bool      `json:"ca,omitempty"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// Weak is why the certificate's public key is too weak, or empty.
	Weak string `json:"weak,omitempty"`
}

// String returns the key and the Secret.
func (c Certificate) String() string { return c.Key + " in Secret " + c.Secret }

// Validity describes the remaining lifetime of a certificate.
type Validity string

// The values of Validity. Certificates that are reissued automatically are due with a third of their lifetime left, and
// urgent with a tenth left. The CA is due with a tenth left and urgent with a hundredth left, because replacing it
// requires a planned outage.
const (
	Valid   Validity = "Valid"
	Due     Validity = "RenewalDue"
	Urgent  Validity = "AboutToExpire"
	Expired Validity = "Expired"
)

// Validity returns the validity at a given time.
func (c Certificate) Validity(now time.Time) Validity {
	lifetime, left := c.NotAfter.Sub(c.NotBefore), c.NotAfter.Sub(now)
	due, urgent := lifetime/3, lifetime/10
	if c.CA {
		due, urgent = lifetime/10, lifetime/100
	}
	switch {
	case left <= 0:
		return Expired
	case left < urgent:
		return Urgent
	case left < due:
		return Due
	}
	return Valid
}

// CertificatesInOrder returns the certificates in order of expiry.
func (s State) CertificatesInOrder() []Certificate {
	list := slices.Clone(s.Certificates)
	slices.SortFunc(list, func(a, b Certificate) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), cmp.Compare(a.String(), b.String()))
	})
	return list
}

// WornCertificates returns the certificates that are about to expire, in order of expiry. A certificate that expires
// with its CA counts only once it has expired, because a new certificate would not be valid for longer.
func (s State) WornCertificates() []Certificate {
	var end time.Time
	for _, c := range s.Certificates {
		if c.CA {
			end = c.NotAfter
		}
	}
	return slices.DeleteFunc(s.CertificatesInOrder(), func(c Certificate) bool {
		validity := c.Validity(s.Now)
		endsWithCA := !c.CA && !end.IsZero() && !c.NotAfter.Before(end)
		return validity == Valid || validity != Expired && endsWithCA
	})
}

// CertificatesValidity returns the worst validity of all certificates, or "".
func (s State) CertificatesValidity() Validity {
	if len(s.Certificates) == 0 {
		return ""
	}
	worst, order := Valid, []Validity{Valid, Due, Urgent, Expired}
	for _, c := range s.WornCertificates() {
		if v := c.Validity(s.Now); slices.Index(order, v) > slices.Index(order, worst) {
			worst = v
		}
	}
	return worst
}

// CertificatesUrgent reports whether certificates require manual action now.
func (s State) CertificatesUrgent() bool {
	v := s.CertificatesValidity()
	return v == Urgent || v == Expired
}

// ExpiryWarnings returns warnings about certificates that are about to expire: the CA, and the first of the others.
func (s State) ExpiryWarnings() []string {
	var warnings []string
	told := false
	for _, c := range s.WornCertificates() {
		switch {
		case c.CA:
			warnings = append(warnings, fmt.Sprintf(
				"the CA (%s) %s. Issue a new CA: see Certificates in docs/operations.md", c, c.describe(s.Now)))
		case !told:
			told = true
			warnings = append(warnings, fmt.Sprintf("%s %s, and has not been renewed", c, c.describe(s.Now)))
		}
	}
	slices.Sort(warnings)
	return warnings
}

func (c Certificate) describe(now time.Time) string {
	at := c.NotAfter.UTC().Format(time.RFC3339)
	left := map[Validity]string{Due: "third", Urgent: "tenth"}
	if c.CA {
		left = map[Validity]string{Due: "tenth", Urgent: "hundredth"}
	}
	switch v := c.Validity(now); v {
	case Expired:
		return "expired at " + at
	case Due, Urgent:
		return fmt.Sprintf("expires at %s, with less than a %s of its lifetime left", at, left[v])
	default:
		return "is valid until " + at
	}
}

// DescribeCertificates returns which certificate expires first, or which certificates are about to expire.
func (s State) DescribeCertificates() string {
	worn := s.WornCertificates()
	if len(worn) == 0 {
		first := s.CertificatesInOrder()[0]
		return fmt.Sprintf("the first to expire, %s, %s", first, first.describe(s.Now))
	}
	var facts []string
	for _, c := range worn {
		facts = append(facts, c.String()+" "+c.describe(s.Now))
	}
	return sentence(facts)
}

// renewCertificates renews certificates of a cluster that is orphaned, has an invalid spec, or waits for its final
// backup, which cannot be taken without valid certificates. It does not act on suspended clusters, or if there are
// foreign objects or contradictory cluster IDs.
func renewCertificates(s State) (Decision, bool) {
	_, broken := invalidSpec(s)
	worn := slices.DeleteFunc(s.WornCertificates(), func(c Certificate) bool { return c.CA })
	untouched := broken || s.Declared.Orphaned != "" || s.lacksLastBackup()
	if len(worn) == 0 || !untouched || !s.mayRenew() {
		return Decision{}, false
	}
	return act(RenewCertificates{}, "%s %s; reissuing it from the recorded CA, without other changes", worn[0],
		worn[0].describe(s.Now))
}

// mayRenew reports whether certificates can be issued from the recorded CA and no other guard prevents it.
func (s State) mayRenew() bool {
	if _, mismatch := clusterIDMismatch(s); mismatch {
		return false
	}
	if _, foreign := foreignObjects(s); foreign {
		return false
	}
	return !s.Declared.Suspended && len(s.Objects.Terminating)+len(s.Objects.Irreplaceable) == 0 &&
		s.Record.CA != "" && s.Record.CA == s.CA.Secret && s.Distrusted() == ""
}
