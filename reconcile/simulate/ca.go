package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// cas are the CA in its Secret and what has been issued; zero for a cluster without TLS.
type cas struct {
	tls bool
	// made is how many CAs there have been.
	made int
	// secret is the one in the Secret, if that is there.
	secret string
	// issuers of what is in the other Secrets, by their names.
	issuers map[string]string
	// worn are the Secrets whose certificates are about to expire.
	worn map[string]bool
}

// fresh is the CA that is made next.
func (a cas) fresh() string { return fmt.Sprintf("CA%d", a.made+1) }

func (w *World) isLeaf(name string) bool {
	return strings.HasPrefix(name, "Secret ") && name != w.ca()
}

// PutCA puts another CA into the Secret, as somebody does who restores the wrong backup.
func (w *World) PutCA() {
	if w.exists(w.ca()) && w.certificates.tls {
		w.certificates.secret = w.certificates.fresh()
		w.certificates.made++
	}
}

// WearCertificates lets time pass for all certificates but that of the CA, until they are about to
// expire.
func (w *World) WearCertificates() {
	for _, name := range w.Objects() {
		if w.certificates.tls && w.isLeaf(name) && w.exists(name) {
			w.certificates.worn[name] = true
		}
	}
}

// wornSecrets are those that exist with certificates that are about to expire.
func (w *World) wornSecrets() []string {
	return slices.DeleteFunc(w.Objects(), func(name string) bool {
		return !w.exists(name) ||
			!w.certificates.worn[name]
	})
}

// seenCertificates are those that are about to expire: the others need no seeing.
func (w *World) seenCertificates() []decide.Certificate {
	var list []decide.Certificate
	for _, name := range w.wornSecrets() {
		secret := strings.TrimPrefix(name, "Secret ")
		list = append(list, decide.Certificate{Secret: secret, Key: "tls.crt",
			NotBefore: w.now.Add(-365 * 24 * time.Hour), NotAfter: w.now.Add(24 * time.Hour)})
	}
	return list
}

// PutBackCA puts the CA that pods trust into the Secret again or, if none runs, the one that
// certificates were issued from.
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

// seenCA is what a pass sees of the CAs, given the rest that it sees.
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

// shown is the Secret with the certificate that passes show to members: that of applications while
// there is none of their own.
func (w *World) shown() string {
	if own := "Secret " + w.name + "-quorate-tls"; w.exists(own) {
		return own
	}
	return "Secret " + w.name + "-client-tls"
}

// issued says whether what a Secret holds is of another CA than the one at hand.
func (w *World) issued(name string) string {
	if c := w.certificates; c.tls && w.isLeaf(name) && w.exists(w.ca()) && c.issuers[name] != c.secret {
		return "issued by another CA"
	}
	return ""
}

// issue writes a Secret. Pods trust the CA that they started with: what is issued from another one
// cuts them off.
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
				w.violate("%s is issued from %s, and %s trusts %s", name, c.secret, w.replicaName(n), p.trusts)
			}
		}
	}
}

// trust is what a pod that starts trusts to its end.
func (w *World) trust() string { return w.certificates.issuers["Secret "+w.name+"-peer-tls"] }

// fromCA takes all Secrets to be issued from what pods are given, and pods to trust what members
// answer by.
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
