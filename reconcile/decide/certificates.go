package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Certificate is a certificate of the cluster, and how long it is good for.
type Certificate struct {
	// Secret that holds it, and its key there.
	Secret string `json:"secret"`
	Key    string `json:"key"`
	// CA: it is that of the CA, from which all others are issued.
	CA        bool      `json:"ca,omitempty"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// Weak says what makes its key too weak; empty if it is not.
	Weak string `json:"weak,omitempty"`
}

// String says which one it is.
func (c Certificate) String() string { return c.Key + " in Secret " + c.Secret }

// Validity is how much of the life of a certificate is left.
type Validity string

// The validities. Of a certificate that is reissued without anybody doing anything, a third of its
// lifetime is left when that is due, and a tenth when it is urgent. A new CA takes an outage that
// somebody has to plan: a tenth, and a hundredth.
const (
	Valid   Validity = "Valid"
	Due     Validity = "RenewalDue"
	Urgent  Validity = "AboutToExpire"
	Expired Validity = "Expired"
)

// Validity at a time.
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

// CertificatesInOrder are the certificates by when they expire, the first one first.
func (s State) CertificatesInOrder() []Certificate {
	list := slices.Clone(s.Certificates)
	slices.SortFunc(list, func(a, b Certificate) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), cmp.Compare(a.String(), b.String()))
	})
	return list
}

// WornCertificates are those that are not good for long, the first to expire first. One that ends
// with its CA counts only once it has expired: none that is issued in its place would be good for
// longer.
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

// CertificatesValidity is that of the certificate that is worst off; empty if there is none.
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

// CertificatesUrgent reports whether a person has to see to the certificates now.
func (s State) CertificatesUrgent() bool {
	v := s.CertificatesValidity()
	return v == Urgent || v == Expired
}

// ExpiryWarnings say which certificates are not good for long: the CA, and the first one of the
// others.
func (s State) ExpiryWarnings() []string {
	var warnings []string
	told := false
	for _, c := range s.WornCertificates() {
		switch {
		case c.CA:
			warnings = append(warnings, fmt.Sprintf(
				"the CA, %s, %s; have a new one made: see Certificates in docs/operations.md", c, c.describe(s.Now)))
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
		return fmt.Sprintf("expires at %s, less than a %s of its lifetime is left", at, left[v])
	default:
		return "is good until " + at
	}
}

// DescribeCertificates says until when all certificates are good, or which are not good for long.
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

// renewCertificates: what an orphan or a broken declaration asks for is not known, but none asks
// for certificates that expire; nor does a cluster that waits for its last backup, which none could be taken of
// without. Beside objects or clusters that are not its own nothing is touched,
// and neither is what a person has suspended.
func renewCertificates(s State) (Decision, bool) {
	_, broken := invalidSpec(s)
	worn := slices.DeleteFunc(s.WornCertificates(), func(c Certificate) bool { return c.CA })
	untouched := broken || s.Declared.Orphaned != "" || s.lacksLastBackup()
	if len(worn) == 0 || !untouched || !s.mayRenew() {
		return Decision{}, false
	}
	return act(RenewCertificates{}, "%s %s; reissue it from the CA on record, and touch nothing else", worn[0],
		worn[0].describe(s.Now))
}

// mayRenew reports whether certificates can be issued from the CA on record, and no other guard
// holds.
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
