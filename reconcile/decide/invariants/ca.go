package invariants

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// oneCA checks writes while members trust a CA other than the CA from which certificates would be issued. Only the
// custom resource, a record that keeps the trusted CA, or a StatefulSet without pods may be written.
func oneCA(s decide.State, d decide.Decision) string {
	if d.Action == nil || !anotherCA(s) {
		return ""
	}
	switch d.Action.(type) {
	case decide.Declare, decide.Seal, decide.StopPods, decide.StopReplicas:
		return "" // these do not issue certificates
	}
	return fmt.Sprintf("%s while members trust a CA other than the one in the Secret", d.Action)
}

// anotherCA reports whether pods exist, or soon will, and the record, the Secrets or etcd name a CA other than the CA
// in the Secret. The record and etcd's response take precedence over the CAs that pods mount.
func anotherCA(s decide.State) bool {
	at, differs := s.CA.Secret, func(one string) bool { return one != "" && one != s.CA.Secret }
	switch {
	case at == "" || !podsThatTrust(s):
		return false
	case differs(s.Record.CA) || differs(s.CA.Proven):
		return true
	case s.Record.CA == at || s.CA.Proven == at:
		return false
	}
	for _, mounted := range s.CA.Mounted {
		if differs(mounted) {
			return true
		}
	}
	return false
}

// wearsOut reports whether any certificate except the CA has less than a third of its lifetime left.
func wearsOut(s decide.State) bool {
	for _, c := range s.Certificates {
		if left := c.NotAfter.Sub(s.Now); !c.CA && 3*left < c.NotAfter.Sub(c.NotBefore) {
			return true
		}
	}
	return false
}

// podsThatTrust reports whether pods, which trust their initial CA, exist or may start.
func podsThatTrust(s decide.State) bool {
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent {
			return true
		}
	}
	return s.Objects.RunsReplicas > 0
}

// mistakenCA returns the problem with the CA that a record names after an action.
func mistakenCA(s decide.State, after string) string {
	before := s.Record.CA
	switch {
	case after == before:
		return ""
	case after != s.CA.Secret || after == "":
		return "names a CA that is not in the Secret"
	case !podsThatTrust(s):
		return ""
	case before != "":
		return "changes the CA that pods trust"
	case !s.Membership.Known || s.CA.Proven != after || len(s.CA.Mounted) == 0:
		return "names a CA that etcd and pods do not confirm"
	}
	for _, mounted := range s.CA.Mounted {
		if mounted != after {
			return "names a CA that some pods do not mount"
		}
	}
	return ""
}
