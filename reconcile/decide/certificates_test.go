package decide

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

// lasts returns a certificate with a lifetime of 3000 days and the given time left.
func lasts(key string, ca bool, left time.Duration) Certificate {
	end := noon.Add(left)
	return Certificate{Secret: "s", Key: key, CA: ca, NotBefore: end.Add(-3000 * day), NotAfter: end}
}

func TestValidity(t *testing.T) {
	for _, c := range []struct {
		ca   bool
		left time.Duration
		want Validity
		says string
	}{
		{false, 1000 * day, Valid, "is valid until"}, {false, 1000*day - 1, Due, "a third of"}, {false, 300 * day, Due, "a third of"}, {false, 300*day - 1, Urgent, "a tenth of"},
		{false, 1, Urgent, "a tenth of"}, {false, 0, Expired, "expired at"}, {false, -day, Expired, "expired at"},
		{true, 300 * day, Valid, "is valid until"}, {true, 300*day - 1, Due, "a tenth of"}, {true, 30 * day, Due, "a tenth of"}, {true, 30*day - 1, Urgent, "a hundredth of"}, {true, 0, Expired, "expired at"},
	} {
		cert := lasts("k", c.ca, c.left)
		if got := cert.Validity(noon); got != c.want {
			t.Errorf("CA %t, %s left: %s", c.ca, c.left, got)
		}
		if got := cert.describe(noon); !strings.Contains(got, c.says) {
			t.Errorf("CA %t, %s left: described as %s", c.ca, c.left, got)
		}
	}
}

// TestExpiringCertificates checks which certificates are about to expire, their validity, and the warnings.
func TestExpiringCertificates(t *testing.T) {
	ca := func(left time.Duration) Certificate { return lasts("ca", true, left) }
	leaf := func(key string, left time.Duration) Certificate { return lasts(key, false, left) }
	for what, c := range map[string]struct {
		certificates []Certificate
		worn         string
		validity     Validity
		warnings     []string
	}{
		"no certificates":               {nil, "", "", nil},
		"valid":                         {[]Certificate{leaf("a", 2000*day), ca(2500 * day)}, "", Valid, nil},
		"due":                           {[]Certificate{leaf("a", 999*day), leaf("b", 500*day)}, "b a", Due, []string{"b in"}},
		"urgent before due":             {[]Certificate{leaf("a", 999*day), leaf("b", 5*day)}, "b a", Urgent, []string{"b in"}},
		"the worst is not the first":    {[]Certificate{leaf("a", 299*day), ca(298 * day)}, "ca", Due, []string{"the CA"}},
		"expired":                       {[]Certificate{leaf("a", -day), leaf("b", 5*day)}, "a b", Expired, []string{"a in"}},
		"expires with its CA":           {[]Certificate{leaf("a", 500*day), ca(500 * day)}, "", Valid, nil},
		"expires before its CA":         {[]Certificate{leaf("a", 500*day-1), ca(500 * day)}, "a", Due, []string{"a in"}},
		"certificate and CA expired":    {[]Certificate{leaf("a", -day), ca(-day)}, "a ca", Expired, []string{"a in", "the CA"}},
		"only the CA is urgent":         {[]Certificate{leaf("a", 2000*day), ca(5 * day)}, "ca", Urgent, []string{"the CA"}},
		"certificate and CA are urgent": {[]Certificate{leaf("tls.crt", 4*day), ca(5 * day)}, "tls.crt ca", Urgent, []string{"the CA", "tls.crt in"}},
		"two expire at the same time":   {[]Certificate{leaf("b", 5*day), leaf("a", 5*day)}, "a b", Urgent, []string{"a in"}},
	} {
		s := State{Now: noon, Certificates: c.certificates}
		var worn []string
		for _, one := range s.WornCertificates() {
			worn = append(worn, one.Key)
		}
		if got := strings.Join(worn, " "); got != c.worn || s.CertificatesValidity() != c.validity {
			t.Errorf("%s: expiring certificates %q, validity %q", what, got, s.CertificatesValidity())
		}
		if got := s.CertificatesUrgent(); got != (c.validity == Urgent || c.validity == Expired) {
			t.Errorf("%s: urgent %t", what, got)
		}
		warnings := s.ExpiryWarnings()
		for i, warning := range warnings {
			if i < len(c.warnings) && strings.HasPrefix(warning, c.warnings[i]) {
				warnings[i] = c.warnings[i]
			}
		}
		if !reflect.DeepEqual(warnings, c.warnings) {
			t.Errorf("%s: warnings are %q", what, warnings)
		}
		if len(c.certificates) > 0 {
			first := strings.Split(c.worn, " ")[0]
			if got := s.DescribeCertificates(); (first == "") != strings.HasPrefix(got, "the first to expire, a in") || !strings.Contains(got, first+" in Secret s") {
				t.Errorf("%s: got %q", what, got)
			}
		}
	}
}

// TestRenewCertificates checks that the rule renews certificates only if the declaration is not applied, and only from
// the recorded CA.
func TestRenewCertificates(t *testing.T) {
	worn := func(s *State) {
		s.Declared.Orphaned, s.Record.CA = "git declares it no longer", "CA1"
		s.CA, s.Certificates = CA{Secret: "CA1", Mounted: []string{"CA1"}, Proven: "CA1"}, []Certificate{lasts("a", false, day)}
	}
	declared := func(s *State) { s.Declared.Orphaned = "" }
	askAlone(t, renewCertificates, map[string]ruleCase{
		"orphaned":                           {3, worn, RenewCertificates{}},
		"declared":                           {3, both(worn, declared), nil},
		"declared, invalid spec":             {3, both(worn, declared, func(s *State) { s.Declared.Problems = []string{"x"} }), RenewCertificates{}},
		"orphaned, invalid spec":             {3, both(worn, func(s *State) { s.Declared.Problems = []string{"x"} }), RenewCertificates{}},
		"no certificates":                    {3, both(worn, func(s *State) { s.Certificates = nil }), nil},
		"the CA itself expires":              {3, both(worn, func(s *State) { s.Certificates[0].CA = true }), nil},
		"suspended":                          {3, both(worn, func(s *State) { s.Declared.Suspended = true }), nil},
		"unmanaged objects exist":            {3, both(worn, func(s *State) { s.Objects.Foreign = []string{"x"} }), nil},
		"two cluster IDs":                    {3, both(worn, func(s *State) { s.ReportedClusterID = 0xc2 }), nil},
		"an object is being deleted":         {3, both(worn, func(s *State) { s.Objects.Terminating = []string{"x"} }), nil},
		"an irreplaceable object is lost":    {3, both(worn, func(s *State) { s.Objects.Irreplaceable = []string{"x"} }), nil},
		"one object being deleted, one lost": {3, both(worn, func(s *State) { s.Objects.Irreplaceable, s.Objects.Terminating = []string{"x"}, []string{"x"} }), nil},
		"no CA":                              {3, both(worn, func(s *State) { s.Record.CA, s.CA = "", CA{} }), nil},
		"no CA recorded":                     {3, both(worn, func(s *State) { s.Record.CA = "" }), nil},
		"no CA in the Secret":                {3, both(worn, func(s *State) { s.CA.Secret = "" }), nil},
		"a different CA, used by nothing":    {3, both(worn, stopped("Stopped"), func(s *State) { s.CA = CA{Secret: "CA2"} }), nil},
		"members use a different CA":         {3, both(worn, func(s *State) { s.CA.Proven = "CA2" }), nil},
	})
}
