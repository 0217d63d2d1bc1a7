package decide_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

func (w *world) setOne(target, key, text string) (err error) {
	if target == "spec" {
		err = decidetest.SetSpec(&w.Declared, key, text)
		w.WindowClosed = key == "window" && text == "closed" || key != "window" && w.WindowClosed
		if w.Declared.Adoption.PeerURL != "" {
			w.Declared.Adoption.PeerURL = w.peerURL(0)
		}
		return err
	}
	if target == "backups" || strings.HasPrefix(target, "job-") {
		return w.setBackups(target, key, text)
	}
	if target == "restore" {
		return w.setRestore(key, text)
	}
	if target == "recovery" {
		return w.setRecovery(key, text)
	}
	switch target + " " + key {
	case "etcd known":
		w.Membership.Known, err = strconv.ParseBool(text)
	case "etcd unconfirmed":
		w.Membership.Known, w.Membership.Unconfirmed = false, text == "true"
	case "etcd disputed":
		w.Membership.Known, w.Membership.Unconfirmed, w.Membership.Disputed = false, text == "true", text == "true"
	case "etcd unrecorded":
		w.Membership.Known, w.Membership.Unconfirmed, w.Membership.Unrecorded = false, text == "true", text == "true"
	case "etcd forbidden":
		w.Membership.Known, w.Membership.Members, w.Membership.Forbidden = false, nil, text
	case "etcd why":
		w.Membership.Why = text
	case "etcd cluster":
		w.Membership.ClusterID, err = decidetest.ID(text)
	case "etcd downgrade":
		w.Membership.Downgrade = decidetest.Text(text)
	case "status generation":
		w.Generation, err = strconv.ParseInt(text, 10, 64)
	case "status seen":
		w.LastSeen = nil
		fields := strings.Fields(decidetest.Text(text))
		for i := 0; i+1 < len(fields) && err == nil; i += 2 {
			m := decide.SeenMember{Name: fields[i]}
			m.Revision, err = strconv.ParseInt(fields[i+1], 10, 64)
			w.LastSeen = append(w.LastSeen, m)
		}
	case "status void":
		w.ReportedVoidRecovery = w.Declared.Recovery.Word
	case "status defragment":
		w.DefragmentationRequest = decide.DefragmentationRequest{Request: decidetest.Text(text), Since: w.Now}
	case "status defragment-since":
		w.DefragmentationRequest.Since, err = w.ago(text)
	case "status defragment-completed":
		w.DefragmentationRequest.Completed, err = strconv.ParseBool(text)
	case "status compared":
		w.Comparison.At, err = w.ago(text)
		w.Comparison.Revision = 100
	case "status comparison-failure":
		w.Comparison.Revision, w.Comparison.Failure = 0, text
	case "status differs-since":
		w.Comparison.DiffersSince, err = w.ago(text)
	case "status version":
		w.ReportedVersion = text
	case "objects replicas":
		w.Objects.RunsReplicas, err = strconv.Atoi(text)
	case "etcd leader":
		for i := range w.Membership.Members {
			w.Membership.Members[i].Leader = w.Membership.Members[i].Name == text
		}
	case "record cluster":
		w.Record.ClusterID, err = decidetest.ID(text)
	case "record uncompared":
		w.Record.Uncompared, err = strconv.ParseBool(text)
	case "record log":
		w.Record.LogVersion = decidetest.Text(text)
	case "record ca":
		w.Record.CA = decidetest.Text(text)
	case "ca ends":
		return w.setExpiry(decide.Certificate{Secret: w.Name + "-ca", Key: "ca.crt", CA: true}, 3650*24*time.Hour, text)
	case "peer ends", "server ends", "client ends":
		return w.setExpiry(decide.Certificate{Secret: w.Name + "-" + target + "-tls", Key: "tls.crt"}, 300*24*time.Hour, text)
	case "ca secret":
		w.CA.Secret = decidetest.Text(text)
	case "ca mounted":
		w.CA.Mounted = strings.Fields(strings.ReplaceAll(decidetest.Text(text), ",", " "))
	case "ca proven":
		w.CA.Proven = decidetest.Text(text)
	case "record founds":
		w.FoundingID, err = decidetest.ID(text)
	case "record token":
		w.Record.Token = text
	case "status cluster":
		w.ReportedClusterID, err = decidetest.ID(text)
	case "lock holder":
		w.LockHolder = text
	case "objects differs":
		w.Objects.DeclarationDiffers, err = strconv.ParseBool(text)
	case "objects token":
		w.Objects.RunsToken = text
	case "objects storage":
		w.Objects.RunsStorage = text
	case "objects runs":
		version, hash, _ := strings.Cut(decidetest.Text(text), "/")
		w.Objects.RunsVersion, w.Objects.RunsHash = version, hash
		if version == "" {
			w.Objects.RunsReplicas = 0
		}
	default:
		ordinal, ours := w.Ordinal(target)
		if !ours {
			return fmt.Errorf("nothing is called %s %s", target, key)
		}
		return w.setSlot(ordinal, key, text)
	}
	return err
}

// setExpiry makes a certificate expire in the given number of days.
func (w *world) setExpiry(c decide.Certificate, lifetime time.Duration, days string) error {
	n, err := strconv.Atoi(days)
	c.NotAfter = w.Now.Add(time.Duration(n) * 24 * time.Hour)
	c.NotBefore = c.NotAfter.Add(-lifetime)
	w.Certificates = slices.DeleteFunc(w.Certificates, func(other decide.Certificate) bool { return other.String() == c.String() })
	w.Certificates = append(w.Certificates, c)
	return err
}

// setSlot changes the replica of an ordinal, its entry in the record, or its member, and creates the target if it is
// missing.
func (w *world) setSlot(ordinal int, key, text string) error {
	switch key {
	case "etcd", "learner", "alarms", "id", "applied", "revision", "storage", "runs", "silent-for", "disagrees", "hash", "hash-why", "db", "in-use", "defragmented", "defragmentation-failure":
		return w.setMember(ordinal, key, text)
	case "replaced":
		times, err := strconv.Atoi(text)
		w.Record.Replaced = []decide.Replacements{{Ordinal: ordinal, Times: times, Last: w.Now}}
		return err
	case "removed":
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: ordinal, VolumeUID: decidetest.Text(text)})
		return nil
	case "leaving":
		leaving, err := strconv.ParseBool(text)
		m, _ := w.Record.Member(ordinal)
		m.Leaving = leaving
		w.Record = w.Record.With(m)
		return err
	case "mode":
		if text == "none" {
			w.Record.Members = slices.DeleteFunc(w.Record.Members, func(m decide.RecordedMember) bool { return m.Ordinal == ordinal })
			return nil
		}
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: ordinal, Mode: decide.Mode(text)})
		return nil
	}
	i := slices.IndexFunc(w.Replicas, func(r decide.Replica) bool { return r.Ordinal == ordinal })
	if i < 0 {
		w.Replicas = append(w.Replicas, decide.Replica{Ordinal: ordinal, Pod: decide.PodAbsent, VolumeUID: volumeUID(ordinal), VolumeToken: w.token()})
		i = len(w.Replicas) - 1
	}
	return w.setReplica(&w.Replicas[i], key, text)
}

func (w *world) setReplica(r *decide.Replica, key, text string) (err error) {
	switch key {
	case "pod":
		r.Pod, r.PodUID, r.PodMessage, r.PodUnbound = decide.PodPhase(text), fmt.Sprintf("p%d", r.Ordinal), "", false
		if r.Pod == decide.PodAbsent {
			r.PodUID = ""
		}
		if r.Pod != decide.PodReady && r.Pod != decide.PodStarting {
			r.ClusterID = 0
		}
	case "since":
		r.PodSince, err = w.ago(text)
	case "started":
		r.PodStarted, err = w.ago(text)
	case "going":
		r.PodGoing, err = w.ago(text)
	case "message":
		r.PodMessage = text
	case "made":
		r.PodVersion, r.PodSpecHash, _ = strings.Cut(text, "/")
	case "quota":
		r.PodQuota, err = decidetest.Mebibytes(text)
	case "crashes":
		r.PodCrashes, err = strconv.Atoi(text)
	case "refused":
		r.PodRefused = text
	case "stopped-by-check":
		r.PodStoppedByCheck, err = strconv.ParseBool(text)
	case "stranded":
		r.Stranded, r.StrandedSince = text, r.PodSince
	case "stranded-for":
		r.StrandedSince, err = w.ago(text)
	case "unbound":
		r.PodUnbound, err = strconv.ParseBool(text)
	case "no-peers":
		r.NoPeers, err = strconv.ParseBool(text)
	case "no-data":
		r.NoData, err = strconv.ParseBool(text)
	case "volume":
		r.VolumeUID, r.VolumeTerminating = decidetest.Text(text), false
		r.NoData = r.Pod == decide.PodFailing && r.VolumeUID != volumeUID(r.Ordinal) // a recreated volume is empty
		if text == "terminating" {
			r.VolumeUID, r.VolumeTerminating = volumeUID(r.Ordinal), true
		}
	case "token":
		r.VolumeToken = text
	case "used":
		r.LastUse.Version, r.LastUse.StorageVersion, _ = strings.Cut(decidetest.Text(text), "/")
	case "lost":
		r.LostCluster, err = decidetest.ID(text)
	case "cluster":
		r.ClusterID, err = decidetest.ID(text)
	default:
		err = fmt.Errorf("a replica has no %s", key)
	}
	return err
}

func (w *world) setMember(ordinal int, key, text string) (err error) {
	i := slices.IndexFunc(w.Membership.Members, func(m decide.Member) bool { n, ours := w.OrdinalOf(m); return ours && n == ordinal })
	if i < 0 {
		w.Membership.Members = append(w.Membership.Members, w.newMember(ordinal))
		i = len(w.Membership.Members) - 1
	}
	m := &w.Membership.Members[i]
	switch key + " " + text {
	case "etcd none":
		w.Membership.Members = slices.Delete(w.Membership.Members, i, i+1)
	case "etcd answers":
		m.Started, m.Answers, m.Name = true, true, w.ReplicaName(ordinal)
	case "etcd added":
		*m = decide.Member{ID: m.ID, PeerURL: m.PeerURL, Learner: true}
	case "etcd silent":
		m.Started, m.Answers, m.Leader, m.Name = true, false, false, cmp.Or(m.Name, w.ReplicaName(ordinal))
	case "etcd unstarted":
		m.Started, m.Answers, m.Leader = false, false, false
	default:
		var n int
		switch key {
		case "applied":
			n, err = strconv.Atoi(text)
			m.Applied = uint64(n)
		case "db":
			n, err = strconv.Atoi(text)
			m.DBSize = int64(n) << 20
		case "in-use":
			m.DBSizeInUse, err = decidetest.Mebibytes(text)
		case "defragmented":
			m.Defragmented.At, err = w.ago(text)
		case "defragmentation-failure":
			m.Defragmented.Failure = text
		case "revision":
			m.Revision, err = strconv.ParseInt(text, 10, 64)
		case "storage":
			m.StorageVersion = text
		case "runs":
			m.Version = text
		case "disagrees":
			m.Disagrees = text
		case "hash-why":
			m.HashWhy = text
		case "hash":
			_, err = fmt.Sscanf(text, "%x@%d/%d", &m.Hash.Sum, &m.Hash.Revision, &m.Hash.CompactRevision)
		case "silent-for":
			var ago time.Duration
			ago, err = time.ParseDuration(text)
			m.SilentSince = w.Now.Add(-ago)
		case "learner":
			m.Learner, err = strconv.ParseBool(text)
		case "alarms":
			m.Alarms = nil
			for kind := range strings.SplitSeq(text, ", ") {
				m.Alarms = append(m.Alarms, decide.AlarmKind(kind))
			}
		case "id":
			m.ID, err = decidetest.ID(text)
		default:
			err = fmt.Errorf("etcd cannot be %s", text)
		}
	}
	return err
}

func (w *world) add(args []datadriven.CmdArg) error {
	lists := map[string]*[]string{
		"drift": &w.Objects.Drift, "remaining": &w.Objects.Remaining, "foreign": &w.Objects.Foreign, "relabelled": &w.Objects.Relabelled,
		"backup-drift": &w.Backups.Drift,
		"terminating":  &w.Objects.Terminating, "irreplaceable": &w.Objects.Irreplaceable,
	}
	if list := lists[args[0].Key]; list != nil {
		*list = append(*list, decidetest.Value(args[0]))
		return nil
	}
	if args[0].Key == "alarm" {
		kind, of, _ := strings.Cut(decidetest.Value(args[0]), " of ")
		id, err := decidetest.ID(of)
		w.Membership.StaleAlarms = append(w.Membership.StaleAlarms, decide.Alarm{ID: id, Kind: decide.AlarmKind(kind)})
		return err
	}
	if args[0].Key == "rewritten" || args[0].Key == "rewritten-unsafely" {
		object, field, _ := strings.Cut(decidetest.Value(args[0]), ": ")
		w.Objects.Rewritten = append(w.Objects.Rewritten, decide.RewrittenField{Object: object, Field: field, Accepted: args[0].Key == "rewritten"})
		return nil
	}
	if args[0].Key != "member" && args[0].Key != "guest" && args[0].Key != "source" {
		return fmt.Errorf("cannot add %s", args[0].Key)
	}
	m, gone := decide.Member{Started: true, Answers: true}, false
	if args[0].Key != "member" {
		m.Version, m.Hash = w.Declared.Version, decide.Hash{Revision: 100, Sum: 1}
	}
	for _, arg := range args[1:] {
		switch arg.Key {
		case "silent":
			m.Answers = false
		case "learner":
			m.Learner = true
		case "gone":
			gone = true
		case "leads":
			m.Leader = true
		case "alarm":
			m.Alarms = []decide.AlarmKind{decide.AlarmKind(decidetest.Value(arg))}
		case "runs":
			m.Version = decidetest.Value(arg)
		case "hash-why":
			m.Hash, m.HashWhy = decide.Hash{}, decidetest.Value(arg)
		case "db":
			size, err := decidetest.Mebibytes(decidetest.Value(arg))
			if err != nil {
				return err
			}
			m.DBSize = size
		case "name":
			m.Name = decidetest.Value(arg)
		case "peer":
			m.PeerURL = decidetest.Value(arg)
		case "id":
			if err := m.ID.UnmarshalText([]byte(decidetest.Value(arg))); err != nil {
				return err
			}
		}
	}
	if args[0].Key != "member" && m.PeerURL == "" {
		m.PeerURL = "https://" + m.Name + ".old:2380"
	}
	switch args[0].Key {
	case "source":
		w.Source.Known, w.Source.ClusterID = true, theSource
		w.Source.Members = append(w.Source.Members, m)
		return nil
	case "guest":
		w.Record.Adopted = w.Record.ClusterID
		w.Record.Guests = append(w.Record.Guests, m.ID)
	}
	if !gone {
		w.Membership.Members = append(w.Membership.Members, m)
	}
	return nil
}

func (w *world) remove(args []datadriven.CmdArg) error {
	switch what := args[0].Key; what {
	case "record":
		w.Record = decide.Record{}
	case "recovery": // from the record, as a manual change
		w.Record.Recovery = decide.RecordedRecovery{}
	case "status":
		w.ReportedClusterID = 0
	case "members":
		w.Membership = decide.Membership{Why: "no pod responds"}
		for i := range w.Replicas {
			w.Replicas[i].ClusterID = 0
		}
	case "pods":
		for i := range w.Replicas {
			r := &w.Replicas[i]
			r.Pod, r.PodUID, r.PodVersion, r.PodSpecHash, r.ClusterID = decide.PodAbsent, "", "", "", 0
		}
	case "volumes":
		for i := range w.Replicas {
			w.Replicas[i].VolumeUID, w.Replicas[i].VolumeToken = "", ""
		}
	case "jobs":
		w.Backups.Jobs, w.Backups.Last = nil, nil
	case "drift":
		w.Objects.Drift = nil
	case "rewritten":
		w.Objects.Rewritten = nil
	case "remaining":
		w.Objects.Remaining = nil
	case "relabelled":
		w.Objects.Relabelled = nil
	case "foreign":
		w.Objects.Foreign = nil
	case "terminating":
		w.Objects.Terminating = nil
	case "irreplaceable":
		w.Objects.Irreplaceable = nil
	default:
		ordinal, ours := w.Ordinal(what)
		if !ours {
			return fmt.Errorf("nothing is called %s", what)
		}
		w.Replicas = slices.DeleteFunc(w.Replicas, func(r decide.Replica) bool { return r.Ordinal == ordinal })
		return w.setMember(ordinal, "etcd", "none")
	}
	w.Replicas = slices.DeleteFunc(w.Replicas, func(r decide.Replica) bool { return r.Pod == decide.PodAbsent && r.VolumeUID == "" })
	return nil
}
