package decide_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

// world is the state of a story.
type world struct {
	decide.State
	isNew bool // no decision has been made yet
	// together is true if the cluster was bootstrapped so that two members may join at the same time.
	together bool
}

const (
	theCluster = decide.ID(0xc1)
	theSource  = decide.ID(0xe1)
	theToken   = "t1"
	theHash    = "h1"
)

var dawn = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func (w *world) cluster(args []datadriven.CmdArg) error {
	b, err := decidetest.Begin(args)
	if err != nil {
		return err
	}
	w.State, w.isNew = decide.State{Name: b.Name, Now: dawn, Declared: b.Declared}, true
	w.together = b.Together
	switch b.Phase {
	case decidetest.Nothing:
		w.Objects.DeclarationDiffers = true
		w.Objects.Drift = []string{"EtcdCluster a: missing", "StatefulSet a: missing"}
	case decidetest.Founded:
		w.found()
	case decidetest.Formed:
		w.found()
		w.form()
	}
	return nil
}

// found creates every object, but no pods.
func (w *world) found() {
	w.Record = decide.FoundingRecord(w.token(), w.Declared.Replicas)
	w.Objects.RunsVersion, w.Objects.RunsHash, w.Objects.RunsReplicas = w.Declared.Version, w.Declared.SpecHash, w.Declared.Replicas
}

// form starts every member and seals it.
func (w *world) form() {
	w.Record.ClusterID, w.ReportedClusterID = theCluster, theCluster
	w.Record.LogVersion = w.Declared.Version[:strings.LastIndex(w.Declared.Version, ".")]
	w.Membership = decide.Membership{Known: true, ClusterID: theCluster}
	for n := range w.Declared.Replicas {
		w.Replicas = append(w.Replicas, w.newReplica(n))
		w.Membership.Members = append(w.Membership.Members, w.newMember(n))
		w.Record.Members[n] = decide.RecordedMember{Ordinal: n, Mode: decide.Sealed, ID: memberID(n), VolumeUID: volumeUID(n)}
	}
	w.Membership.Members[0].Leader = true
}

func (w *world) newReplica(n int) decide.Replica {
	return decide.Replica{
		Ordinal: n, Pod: decide.PodReady, PodUID: fmt.Sprintf("p%d", n),
		PodVersion: w.Objects.RunsVersion, PodSpecHash: w.Objects.RunsHash,
		VolumeUID: volumeUID(n), VolumeToken: w.token(), ClusterID: theCluster,
	}
}

func (w *world) token() string {
	if w.together {
		return decide.FoundingToken(theToken, w.Declared.Version)
	}
	return theToken
}

func (w *world) newMember(n int) decide.Member {
	return decide.Member{
		ID: memberID(n), Name: w.ReplicaName(n), PeerURL: w.peerURL(n), Started: true, Answers: true, Version: w.Declared.Version,
		DBSize: 20 << 20,
	}
}

func (w *world) peerURL(n int) string {
	return fmt.Sprintf("https://%s.%s.b.svc:2380", w.ReplicaName(n), w.Name)
}

func memberID(n int) decide.ID { return decide.ID(0xa0 + n) }

func volumeUID(n int) string { return fmt.Sprintf("v%d", n) }

// strand makes the volume of an ordinal unreachable. Passes have known this for the given time.
func (w *world) strand(n int, ago time.Duration) {
	w.Replicas[n].Stranded, w.Replicas[n].StrandedSince = "x", w.Now.Add(-ago)
}
