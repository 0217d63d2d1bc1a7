package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

var (
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	day   = 24 * time.Hour
	both  = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	first = Leaf{CommonName: "server", DNSNames: []string{"*.a.default.svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, Usages: both}
)

func ca(t *testing.T) *CA {
	t.Helper()
	a, err := NewCA("a", "default", now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *CA, l Leaf) Pair {
	t.Helper()
	p, err := a.Issue(l, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestIssuedLeafPassesCheck(t *testing.T) {
	a := ca(t)
	for _, l := range []Leaf{first, {CommonName: "root", Usages: both[1:]}} {
		if err := a.Check(issue(t, a, l), l, now); err != nil {
			t.Errorf("%s: %v", l.CommonName, err)
		}
	}
}

func TestCheckReportsReason(t *testing.T) {
	a, other := ca(t), ca(t)
	good := issue(t, a, first)
	nameless := Leaf{CommonName: "server", Usages: both}
	with := func(change func(*Leaf)) Leaf { l := first; change(&l); return l }
	for _, test := range []struct {
		name string
		pair Pair
		leaf Leaf
		now  time.Time
		want string
	}{
		{"nothing", Pair{}, first, now, "the certificate is missing"},
		{"no key", Pair{Certificate: good.Certificate}, first, now, "the key is missing"},
		{"not PEM", Pair{Certificate: []byte("x"), Key: good.Key}, first, now, "text found outside the PEM blocks"},
		{"key of another", Pair{Certificate: good.Certificate, Key: issue(t, a, first).Key}, first, now, "the key does not match the certificate"},
		{"a chain", Pair{Certificate: append(bytes.Clone(good.Certificate), a.Pair().Certificate...), Key: good.Key}, first, now, "expected one certificate, found 2"},
		{"other CA", issue(t, other, first), first, now, "which is not this cluster's CA"},
		{"expired", good, first, now.Add(366 * day), "it expired at 2027-03-01T12:00:00Z"},
		{"soon expired", good, first, now.Add(244 * day), "it expires at 2027-03-01T12:00:00Z: less than a third of its lifetime is left"},
		{"from the future", good, first, now.Add(-2 * time.Hour), "it is not valid before 2026-03-01T11:00:00Z"},
		{"other name", good, with(func(l *Leaf) { l.CommonName = "x" }), now, `it lacks the common name "x"`},
		{"no such SAN", good, with(func(l *Leaf) { l.DNSNames = []string{"b"} }), now, "it lacks the name b"},
		{"no such address", good, with(func(l *Leaf) { l.IPAddresses = []net.IP{net.IPv6loopback} }), now, "it lacks the address ::1"},
		{"no such usage", issue(t, a, with(func(l *Leaf) { l.Usages = both[:1] })), first, now, "it lacks the usage clientAuth"},
		{"names where none belong", good, nameless, now, "it must not have the name *.a.default.svc, the address 127.0.0.1"},
	} {
		err := a.Check(test.pair, test.leaf, test.now)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if err := a.Check(good, first, now.Add(240*day)); err != nil {
		t.Errorf("more than a third is left: %v", err)
	}
}

func TestReadCA(t *testing.T) {
	a := ca(t)
	again, err := ReadCA(a.Pair(), now)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(issue(t, again, first), first, now); err != nil {
		t.Errorf("issued by the CA as stored: %v", err)
	}
	for what, test := range map[string]struct {
		pair Pair
		now  time.Time
	}{
		"the certificate is missing":                  {Pair{}, now},
		"the certificate is not a CA certificate":     {issue(t, a, first), now},
		"it expired at 2036-02-27T12:00:00Z":          {a.Pair(), now.Add(caLifetime + day)},
		"it is not valid before 2026-03-01T11:00:00Z": {a.Pair(), now.Add(-day)},
	} {
		if _, err := ReadCA(test.pair, test.now); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

// TestCAsAreDistinct checks that two CAs of the same cluster can be distinguished during a rotation.
func TestCAsAreDistinct(t *testing.T) {
	a, b := ca(t), ca(t)
	if a.String() == b.String() {
		t.Errorf("both are %s", a)
	}
	if bytes.Equal(a.certificate.SubjectKeyId, b.certificate.SubjectKeyId) {
		t.Error("both have the same key ID")
	}
	leaf, err := ParseCertificates(issue(t, a, first).Certificate)
	if err != nil || !bytes.Equal(leaf[0].AuthorityKeyId, a.certificate.SubjectKeyId) {
		t.Errorf("the leaf does not name the key of its CA: %v", err)
	}
}

func TestLeafDoesNotOutliveItsCA(t *testing.T) {
	a := ca(t)
	end := a.certificate.NotAfter
	p, err := a.Issue(first, end.Add(-day))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ParseCertificates(p.Certificate)
	if err != nil || leaf[0].NotAfter.After(end) {
		t.Errorf("leaf until %s, CA until %s: %v", leaf[0].NotAfter, end, err)
	}
}

// TestLeafExpiringWithCAIsKept checks that a certificate that expires with its CA is not reissued again and again as
// the end approaches, because a new certificate would not be valid for longer.
func TestLeafExpiringWithCAIsKept(t *testing.T) {
	a := ca(t)
	end := a.certificate.NotAfter
	p, err := a.Issue(first, end.Add(-30*day))
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []time.Duration{20 * day, day, time.Minute} {
		if err := a.Check(p, first, end.Add(-left)); err != nil {
			t.Errorf("%s before the end: %v", left, err)
		}
	}
	if err := a.Check(p, first, end.Add(time.Second)); err == nil {
		t.Error("it can be used after its end")
	}
}

func TestFingerprint(t *testing.T) {
	a, b := ca(t).Pair().Certificate, ca(t).Pair().Certificate
	if got := Fingerprint(a); len(got) != 95 || got == Fingerprint(b) || got != Fingerprint(append([]byte("\n"), a...)) {
		t.Errorf("got %q", got)
	}
	for what, text := range map[string][]byte{"two": append(bytes.Clone(a), b...), "none": nil, "no certificate": []byte("x")} {
		if got := Fingerprint(text); got != "" {
			t.Errorf("the fingerprint of %s is %q", what, got)
		}
	}
	if got := Fingerprints(append(bytes.Clone(a), b...)); len(got) != 2 || got[0] != Fingerprint(a) {
		t.Errorf("the fingerprints of two are %q", got)
	}
}

func TestParseCertificatesIsStrict(t *testing.T) {
	a := ca(t)
	good := string(a.Pair().Certificate)
	half := good[:len(good)/2]
	for name, text := range map[string]string{
		"empty":          "",
		"blank":          " \n",
		"text before":    "hello\n" + good,
		"text between":   good + "hello\n" + good,
		"text after":     good + "hello",
		"cut off":        half,
		"cut off inside": half + "\n" + good,
		"a key":          string(a.Pair().Key),
		"not DER":        "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n",
	} {
		if list, err := ParseCertificates([]byte(text)); err == nil {
			t.Errorf("%s: %d certificates", name, len(list))
		}
	}
	if list, err := ParseCertificates([]byte("\n" + good + "\r\n\n" + good)); err != nil || len(list) != 2 {
		t.Errorf("two certificates: %d, %v", len(list), err)
	}
}

// TestKeysAreNotPrinted checks that keys are never printed in clear text.
func TestKeysAreNotPrinted(t *testing.T) {
	p := issue(t, ca(t), first)
	secret := strings.Split(string(p.Key), "\n")[1]
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "pair", p, "key", p.Key)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "pair", p, "key", p.Key)
	encoded, err := json.Marshal(map[string]any{"pair": p, "pointer": &p})
	if err != nil {
		t.Fatal(err)
	}
	outputs := []string{logged.String(), string(encoded), fmt.Sprint(p, &p, []Pair{p}), fmt.Sprintf("%+v", map[string]*Pair{"": &p})}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		outputs = append(outputs, fmt.Sprintf(verb, p), fmt.Sprintf(verb, p.Key))
	}
	for _, output := range outputs {
		if strings.Contains(output, secret) || strings.Contains(output, fmt.Sprintf("%x", secret)) || strings.Contains(output, fmt.Sprint([]byte(secret))[1:100]) {
			t.Errorf("the key is in %s", output)
		}
	}
}

func FuzzParseCertificates(f *testing.F) {
	a, err := NewCA("a", "default", now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.Pair().Certificate)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseCertificates(text)
		if err == nil && len(list) != bytes.Count(text, []byte("-----BEGIN CERTIFICATE-----")) {
			t.Errorf("%d certificates in %q", len(list), text)
		}
	})
}
