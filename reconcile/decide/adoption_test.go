package decide_test

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// guest returns a healthy member of an adopted cluster with the name of a replica.
func (w *world) guest(n int) decide.Member {
	return decide.Member{ID: decide.ID(0xd0 + n), Name: w.ReplicaName(n), PeerURL: fmt.Sprintf("https://a-%d.a.old.svc:2380", n),
		Answers: true, Started: true, Version: w.Declared.Version, Hash: decide.Hash{Revision: 9, Sum: 1}}
}

// host declares the adoption of the cluster, and records and lists n guests.
func (w *world) host(n int) {
	w.Declared.Adoption = decide.AdoptionOrder{ClusterID: theCluster, PeerURL: w.peerURL(0)}
	w.Record.Adopted = w.Record.ClusterID
	for i := range n {
		w.Record.Guests = append(w.Record.Guests, w.guest(i).ID)
		w.Membership.Members = append(w.Membership.Members, w.guest(i))
	}
	w.Membership.ClusterID = theCluster
}

// flagOfAdoption sets the state of an adoption.
func (w *world) flagOfAdoption(flag string) {
	if strings.HasPrefix(flag, "source") {
		w.Declared.Adoption = decide.AdoptionOrder{ClusterID: theCluster, PeerURL: w.peerURL(0)}
		w.Source = decide.Membership{Known: flag != "source unknown", ClusterID: theCluster, Members: []decide.Member{w.guest(0)}}
		switch flag {
		case "source unfit":
			w.Source.Members[0].Alarms = []decide.AlarmKind{"NOSPACE"}
		case "source abandoned":
			w.Declared.Adoption.Abandon = true
		}
		return
	}
	if w.Record.Token == "" || w.Record.ClusterID == 0 {
		return
	}
	n := 1
	if flag == "many guests" {
		n = 3
	}
	w.host(n)
	order := &w.Declared.Adoption
	switch flag {
	case "guest vanished":
		w.Membership.Members = w.Membership.Members[:len(w.Membership.Members)-1]
	case "guest released", "many guests":
		order.Release = []decide.ID{0xd0}
	case "guest leads":
		order.Release = []decide.ID{0xd0}
		w.Membership.Members[len(w.Membership.Members)-1].Leader = true
	case "silent guest", "silent guest released":
		w.Membership.Members[len(w.Membership.Members)-1].Answers = false
		if flag != "silent guest" {
			order.Release = []decide.ID{0xd0}
		}
	case "guests abandoned":
		order.Abandon = true
	case "adoption taken back":
		*order = decide.AdoptionOrder{}
	case "guest, stopped":
		w.Declared.Lifecycle = decide.Stopped
	}
}

var flagsOfAdoption = []string{"source", "source unknown", "source unfit", "source abandoned", "guest", "many guests", "guest vanished",
	"guest released", "guest leads", "silent guest", "silent guest released", "guests abandoned", "adoption taken back", "guest, stopped"}

// hosting returns a change to a healthy cluster that adds n guests, the first of which git releases.
func hosting(n int, change func(*world)) func(*world) {
	return func(w *world) {
		w.host(n)
		w.Declared.Adoption.Release = []decide.ID{0xd0}
		change(w)
	}
}

// sourced returns the state before an adoption.
func sourced(change func(*world)) func(*world) {
	return func(w *world) {
		nothing(w)
		w.flagOfAdoption("source")
		change(w)
	}
}

func unchanged(*world) {}

var (
	adopts    = acts(decide.Bootstrap{Adopts: theCluster})
	lastGuest = acts(decide.RemoveMember{ID: 0xd1, Name: "guest a-1"})
	oneGuest  = acts(decide.RemoveMember{ID: 0xd0, Name: "guest a-0"})
)

var wrongsAboutAdoptions = []wrong{
	{"guests leave only if git releases them", "an unreleased guest", hosting(2, unchanged), lastGuest},
	{"guests leave only if git releases them", "while a member is not responding", hosting(2, silent(1)), oneGuest},
	{"guests leave only if git releases them", "although the replicas need the others", hosting(5, func(w *world) {
		w.Membership.Members, w.Declared.Replicas = w.Membership.Members[2:], 1
	}), oneGuest},
	{"the record is never weakened", "a guest that is listed", hosting(2, func(w *world) { w.Record.Guests = append(w.Record.Guests, 0xdf) }),
		decision{decide.Act, decide.Seal{ClusterID: 0xc2, Members: decide.Ordinals(0).With(0)}, "because"}},
	{"an adopted cluster keeps its voters", "stopped", hosting(2, func(w *world) { w.Declared.Lifecycle = decide.Stopped }), acts(decide.ApplyObjects{})},
	{"an adopted cluster keeps its voters", "all pods", hosting(2, unchanged), acts(decide.StopPods{})},
	{"an adopted cluster keeps its voters", "all objects", hosting(2, unchanged), acts(decide.DeleteObjects{})},
	{"never bootstrapped twice", "instead of an adoption", sourced(unchanged), acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "another cluster is adopted", sourced(func(w *world) { w.Source.ClusterID = 0xc2 }), adopts},
	{"never bootstrapped twice", "a cluster not responding is adopted", sourced(func(w *world) { w.Source.Known = false }), adopts},
	{"never bootstrapped twice", "an unhealthy cluster is adopted", sourced(func(w *world) { w.Source.Members[0].Answers = false }), adopts},
	{"never bootstrapped twice", "adopted although a volume exists", sourced(func(w *world) { w.Replicas = []decide.Replica{{VolumeUID: "v0"}} }), adopts},
	{"never bootstrapped twice", "adopted although it should not run", sourced(func(w *world) { w.Declared.Lifecycle = decide.Stopped }), adopts},
	{"never bootstrapped twice", "adopted although it exists", hosting(1, unchanged), adopts},
	{"Done means nothing is left to do", "a guest is not responding", hosting(1, silent(3)), decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "abandoned, but replicas are still members", hosting(1, func(w *world) { w.Declared.Adoption.Abandon = true }), decision{decide.Done, nil, "done"}},
}

var rightsAboutAdoptions = []wrong{
	{"", "adopts", sourced(unchanged), adopts},
	{"", "releases a guest", hosting(2, unchanged), oneGuest},
	{"", "releases a guest that is not responding", hosting(2, silent(3)), oneGuest},
	{"", "is done while guests remain", hosting(2, unchanged), decision{decide.Done, nil, "done"}},
	{"", "removes a replica after abandoning", hosting(2, func(w *world) { w.Declared.Adoption.Abandon = true }), acts(decide.RemoveMember{ID: 0xa2, Name: "a-2"})},
	{"", "removes the last replica after abandoning", hosting(2, func(w *world) {
		w.Declared.Adoption.Abandon = true
		w.Membership.Members, w.Record.Members = append(w.Membership.Members[:1:1], w.Membership.Members[3:]...), w.Record.Members[:1]
		w.Membership.Members[0].Leader = false
	}), acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
}
