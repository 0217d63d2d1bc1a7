package decide

import "fmt"

// oneAuthority: what is written while members trust another authority than the one that certificates would be issued from is the
// custom resource, or the record that keeps to what they trust, or a StatefulSet of no pods.
func oneAuthority(s State, d Decision) string {
	if d.Action == nil || !anotherAuthority(s) {
		return ""
	}
	switch d.Action.(type) {
	case Declare, Seal, StopPods:
		return "" // none of them issues anything
	}
	return fmt.Sprintf("%s while members trust another authority than the one at hand", d.Action)
}

// anotherAuthority: pods are there, or soon will be, and any of record, Secrets and etcd knows another authority than the one at hand. A
// record outweighs what pods mount, and so does etcd's answer.
func anotherAuthority(s State) bool {
	at, differs := s.Authority.Secret, func(one string) bool { return one != "" && one != s.Authority.Secret }
	switch {
	case at == "" || !podsThatTrust(s):
		return false
	case differs(s.Record.Authority) || differs(s.Authority.Proven):
		return true
	case s.Record.Authority == at || s.Authority.Proven == at:
		return false
	}
	for _, mounted := range s.Authority.Mounted {
		if differs(mounted) {
			return true
		}
	}
	return false
}

// wearsOut: less than a third of the lifetime of a certificate is left, the authority's left aside.
func wearsOut(s State) bool {
	for _, c := range s.Certificates {
		if left := c.NotAfter.Sub(s.Now); !c.Authority && 3*left < c.NotAfter.Sub(c.NotBefore) {
			return true
		}
	}
	return false
}

// podsThatTrust: what pods start with they trust to their end.
func podsThatTrust(s State) bool {
	for _, r := range s.Replicas {
		if r.Pod != PodAbsent {
			return true
		}
	}
	return s.Objects.RunsReplicas > 0
}

// mistakenAuthority says what is wrong with the authority that a record names after an action.
func mistakenAuthority(s State, after string) string {
	before := s.Record.Authority
	switch {
	case after == before:
		return ""
	case after != s.Authority.Secret || after == "":
		return "names an authority that is not at hand"
	case !podsThatTrust(s):
		return ""
	case before != "":
		return "changes the authority that pods trust"
	case !s.Membership.Known || s.Authority.Proven != after || len(s.Authority.Mounted) == 0:
		return "names an authority that etcd and pods do not confirm"
	}
	for _, mounted := range s.Authority.Mounted {
		if mounted != after {
			return "names an authority that not all pods are given"
		}
	}
	return ""
}
