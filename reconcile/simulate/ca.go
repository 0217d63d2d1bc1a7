package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// cas holds the CA Secret's content and the issued certificates. It is zero for a cluster without TLS.
type cas struct {
	tls bool
	// made is the number of CAs created so far.
	made int
	// secret is the CA in the CA Secret, if that Secret exists.
	secret string
	// issuers maps the other Secrets to the CA that issued their certificates.
	issuers map[string]string
	// worn contains the Secrets whose certificates are about to expire.
	worn map[string]bool
}

// fresh returns the name of the next CA to create.
func (a cas) fresh() string { return fmt.Sprintf("CA%d", a.made+1) }

func (w *World) isLeaf(name string) bool {
	return strings.HasPrefix(name, "Secret ") && name != w.ca()
}

// PutCA puts a different CA into the Secret, as restoring the wrong backup does.
func (w *World) PutCA() {
	if w.exists(w.ca()) && w.certificates.tls {
		w.certificates.secret = w.certificates.fresh()
		w.certificates.made++
	}
}

// WearCertificates makes all certificates except the CA certificate expire soon.
func (w *World) WearCertificates() {
	for _, name := range w.Objects() {
		if w.certificates.tls && w.isLeaf(name) && w.exists(name) {
			w.certificates.worn[name] = true
		}
	}
}

// wornSecrets returns the existing Secrets with certificates that are about to expire.
func (w *World) wornSecrets() []string {
	return slices.DeleteFunc(w.Objects(), func(name string) bool {
		return !w.exists(name) ||
			!w.certificates.worn[name]
	})
}

// seenCertificates returns only the certificates that are about to expire, because passes do not need the others.
func (w *World) seenCertificates() []decide.Certificate {
	var list []decide.Certificate
	for _, name := range w.wornSecrets() {
		secret := strings.TrimPrefix(name, "Secret ")
		list = append(list, decide.Certificate{Secret: secret, Key: "tls.crt",
			NotBefore: w.now.Add(-365 * 24 * time.Hour), NotAfter: w.now.Add(24 * time.Hour)})
	}
	return list
}

// PutBackCA puts the CA that pods trust back into the Secret. If pods do not trust a CA, it puts back the CA that
// issued the certificates.
func (w *World) PutBackCA() {
	if issuer := w.trust(); issuer != "" && w.exists(w.ca()) {
		w.certificates.secret = issuer
	}
	for _, n := range w.ordinals() {
		if trusts := w.pods[n].trusts; trusts != "" && w.exists(w.ca()) {
			w.certificates.secret = trusts
			return
		}
	}
}

// seenCA returns the CAs as a pass observes them, given the rest of the state.
func (w *World) seenCA(s decide.State) decide.CA {
	c := w.certificates
	if !c.tls {
		return decide.CA{}
	}
	var seen decide.CA
	switch {
	case w.exists(w.ca()):
		seen.Secret = c.secret
	case !s.CAInUse():
		seen.Secret = c.fresh()
	}
	for _, name := range w.Objects() {
		if w.isLeaf(name) && w.exists(name) {
			seen.Mounted = append(seen.Mounted, c.issuers[name])
		}
	}
	slices.Sort(seen.Mounted)
	seen.Mounted = slices.Compact(seen.Mounted)
	if decide.Answering(s.Membership.Members) > 0 {
		seen.Proven = c.issuers[w.shown()]
	}
	return seen
}

// shown returns the Secret with the certificate that passes present to members: Quorate's own or, if it does not exist,
// the applications' certificate.
func (w *World) shown() string {
	if own := "Secret " + w.name + "-quorate-tls"; w.exists(own) {
		return own
	}
	return "Secret " + w.name + "-client-tls"
}

// issued returns a message if a Secret's certificate was not issued by the current CA, or an empty string.
func (w *World) issued(name string) string {
	if c := w.certificates; c.tls && w.isLeaf(name) && w.exists(w.ca()) && c.issuers[name] != c.secret {
		return "issued by a different CA"
	}
	return ""
}

// issue writes a Secret. Running pods trust the CA with which they started, so they reject certificates from other CAs.
func (w *World) issue(name string, there bool) {
	c := &w.certificates
	switch {
	case !c.tls:
	case name == w.ca() && !there:
		c.secret = c.fresh()
		c.made++
	case w.isLeaf(name):
		c.issuers[name] = c.secret
		delete(c.worn, name)
		for _, n := range w.ordinals() {
			if p := w.pods[n]; p.up && p.trusts != "" && p.trusts != c.secret {
				w.violate("%s is issued from %s, but %s trusts %s", name, c.secret, w.replicaName(n), p.trusts)
			}
		}
	}
}

// trust returns the CA that a pod would trust if it started now.
func (w *World) trust() string { return w.certificates.issuers["Secret "+w.name+"-peer-tls"] }

// fromCA assumes that pods trust the CA that members prove, and that this CA issued all certificates except the peer
// certificate, which the mounted CA issued.
func (w *World) fromCA(s decide.State) {
	seen := s.CA
	w.certificates = cas{tls: seen.Secret != "" || s.Record.CA != "", issuers: map[string]string{},
		worn: map[string]bool{}, made: 100}
	w.certificates.secret = seen.Secret
	given := cmp.Or(seen.Proven, s.Record.CA, seen.Secret)
	for _, name := range w.Objects() {
		if w.isLeaf(name) {
			w.certificates.issuers[name] = given
		}
	}
	if len(seen.Mounted) > 0 {
		w.certificates.issuers["Secret "+w.name+"-peer-tls"] = seen.Mounted[0]
	}
	for n, p := range w.pods {
		if p.up {
			p.trusts = given
		}
		w.pods[n] = p
	}
}
