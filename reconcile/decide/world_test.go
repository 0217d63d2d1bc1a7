package decide_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
)

// world is the state that a story is about.
type world struct {
	decide.State
	isNew bool // nothing has been decided yet
}

const (
	theCluster = decide.ID(0xc1)
	theToken   = "t1"
	theHash    = "h1"
)

var dawn = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func (w *world) cluster(args []datadriven.CmdArg) error {
	replicas, phase := 3, "formed"
	w.State, w.isNew = decide.State{Name: args[0].Key, Now: dawn}, true
	w.Declared = decide.Declared{Replicas: replicas, Version: "3.6.16", Lifecycle: "Running", SpecHash: theHash}
	for _, arg := range args[1:] {
		switch arg.Key {
		case "phase":
			phase = value(arg)
		default:
			if err := w.setSpec(arg.Key, value(arg)); err != nil {
				return err
			}
		}
	}
	switch phase {
	case "nothing":
		w.Objects.DeclarationDiffers = true
		w.Objects.Drift = []string{"EtcdCluster a: missing", "StatefulSet a: missing"}
	case "founded":
		w.found()
	case "formed":
		w.found()
		w.form()
	default:
		return fmt.Errorf("unknown phase %q", phase)
	}
	return nil
}

// found writes every object; no pod has been made yet.
func (w *world) found() {
	w.Record = decide.FoundingRecord(theToken, w.Declared.Replicas)
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
		VolumeUID: volumeUID(n), VolumeToken: theToken, ClusterID: theCluster,
	}
}

func (w *world) newMember(n int) decide.Member {
	return decide.Member{
		ID: memberID(n), Name: w.ReplicaName(n), PeerURL: w.peerURL(n), Started: true, Answers: true, Version: w.Declared.Version,
	}
}

func (w *world) peerURL(n int) string {
	return fmt.Sprintf("https://%s.%s.b.svc:2380", w.ReplicaName(n), w.Name)
}

func memberID(n int) decide.ID { return decide.ID(0xa0 + n) }

func volumeUID(n int) string { return fmt.Sprintf("v%d", n) }

// table prints the state, a line for each thing that is not as it is in health.
func (w *world) table() string {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		text := strings.NewReplacer("\n", " ", "\r", " ").Replace(fmt.Sprintf(format, args...))
		fmt.Fprintf(&out, "%-9s %s\n", name, strings.TrimSpace(text))
	}
	d := w.Declared
	line("declared", "%d x %s %s %s", d.Replicas, d.Version, d.SpecHash, d.Lifecycle)
	if d.Suspended {
		line("", "suspended")
	}
	line("record", "token=%s cluster=%s%s", orNone(w.Record.Token), id(w.Record.ClusterID), w.describeRemoved(w.Record))
	w.templateLine(line)
	if a := w.CA; a.Secret != "" || w.Record.CA != "" {
		line("ca", "record=%s secret=%s mounted=%s proven=%s", orNone(w.Record.CA), orNone(a.Secret), orNone(strings.Join(a.Mounted, ",")), orNone(a.Proven))
	}
	for _, c := range w.WornCertificates() {
		line("", "%s: %s", c, c.Validity(w.Now))
	}
	line("status", "cluster=%s", id(w.ReportedClusterID))
	known := "known"
	if !w.Membership.Known {
		known = "unknown " + w.Membership.Why
	}
	if w.Membership.Downgrade != "" {
		known += " downgrade=" + w.Membership.Downgrade
	}
	line("etcd", "cluster=%s %s", id(w.Membership.ClusterID), known)
	for _, alarm := range w.Membership.StaleAlarms {
		line("", "%s of %s, which is gone", alarm.Kind, alarm.ID)
	}
	for _, n := range w.ordinals() {
		line(w.ReplicaName(n), "%s", w.row(n))
	}
	for _, m := range w.MembersInOrder() {
		if _, ours := w.OrdinalOf(m); !ours {
			line("member", "%s %s", m.Name, describeMember(m))
		}
	}
	for _, list := range [][]string{d.Problems, w.Objects.Foreign, w.Objects.Relabelled, w.Objects.Terminating, w.Objects.Irreplaceable, w.Objects.Drift} {
		for _, what := range slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" }) {
			line("", "%s", what)
		}
	}
	return out.String()
}

// templateLine prints what new pods are made from, if git declares something else or they are none.
func (w *world) templateLine(line func(name, format string, args ...any)) {
	o := w.Objects
	if o.RunsVersion != "" && (o.RunsVersion != w.Declared.Version || o.RunsHash != w.Declared.SpecHash || o.RunsReplicas == 0) {
		line("runs", "%d x %s %s", o.RunsReplicas, o.RunsVersion, o.RunsHash)
	}
}

func (w *world) describeRemoved(r decide.Record) string {
	var text strings.Builder
	for _, gone := range r.Removed {
		fmt.Fprintf(&text, " removed=%s(%s)", w.ReplicaName(gone.Ordinal), orNone(gone.VolumeUID))
	}
	return text.String()
}

// ordinals are all that the state says anything about.
func (w *world) ordinals() []int {
	var list []int
	for _, r := range w.Replicas {
		list = append(list, r.Ordinal)
	}
	for _, m := range w.Record.Members {
		list = append(list, m.Ordinal)
	}
	for _, m := range w.Membership.Members {
		if n, ours := w.OrdinalOf(m); ours {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// row prints the pod, the volume, the record and the member of an ordinal, in fixed columns.
func (w *world) row(n int) string {
	r := w.Replica(n)
	volume := orNone(r.VolumeUID)
	if r.VolumeTerminating {
		volume += "(terminating)"
	}
	recorded := "no record"
	if m, found := w.Record.Member(n); found {
		recorded = describeRecorded(m)
	}
	member := "no member"
	for _, m := range w.Membership.Members {
		if ordinal, ours := w.OrdinalOf(m); ours && ordinal == n {
			member = describeMember(m)
		}
	}
	return fmt.Sprintf("pod=%-8s volume=%-6s %-15s %s %s", r.Pod, volume, recorded, member, w.describeMore(r))
}

// describeMore says of a replica what is not in the columns.
func (w *world) describeMore(r decide.Replica) string {
	words := []string{r.PodMessage}
	if r.Pod != decide.PodAbsent && r.PodSpecHash != "" && (r.PodVersion != w.Declared.Version || r.PodSpecHash != w.Declared.SpecHash) {
		words = append(words, fmt.Sprintf("made=%s/%s", r.PodVersion, r.PodSpecHash))
	}
	if r.PodCrashes > 0 {
		words = append(words, fmt.Sprintf("crashes=%d", r.PodCrashes))
	}
	if r.Stranded != "" {
		words = append(words, "stranded")
	}
	if r.PodStoppedByCheck {
		words = append(words, "stopped-by-check")
	}
	if r.PodUnbound {
		words = append(words, "unbound")
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func describeRecorded(m decide.RecordedMember) string {
	if m.VolumeUID == "" && m.ID == 0 {
		return string(m.Mode)
	}
	return fmt.Sprintf("%s(%s %s)", m.Mode, id(m.ID), orNone(m.VolumeUID))
}

func describeMember(m decide.Member) string {
	words := []string{id(m.ID), "voter"}
	if m.Learner {
		words[1] = "learner"
	}
	if m.Leader {
		words = append(words, "leads")
	}
	switch {
	case !m.Started:
		words = append(words, "not started")
	case !m.Answers:
		words = append(words, "silent")
	}
	if m.Applied > 0 {
		words = append(words, fmt.Sprintf("applied=%d", m.Applied))
	}
	if m.StorageVersion != "" {
		words = append(words, "storage="+m.StorageVersion)
	}
	if m.Hash.Known() {
		words = append(words, fmt.Sprintf("%x@%d/%d", m.Hash.Sum, m.Hash.Revision, m.Hash.CompactRevision))
	}
	return strings.Join(append(words, m.Alarms...), " ")
}

func id(id decide.ID) string {
	if id == 0 {
		return "none"
	}
	return id.String()
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// value is the value of an argument; commas within parentheses are part of it.
func value(arg datadriven.CmdArg) string { return strings.Join(arg.Vals, ", ") }

func parseID(text string) (decide.ID, error) {
	if text == "none" {
		return 0, nil
	}
	var id decide.ID
	return id, id.UnmarshalText([]byte(text))
}

func parseBool(text string) (bool, error) { return strconv.ParseBool(text) }

// strand puts the volume of an ordinal out of reach, and has passes know of it for so long.
func (w *world) strand(n int, ago time.Duration) {
	w.Replicas[n].Stranded, w.Replicas[n].StrandedSince = "x", w.Now.Add(-ago)
}
