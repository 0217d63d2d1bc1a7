package decidetest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
)

// Phase is the state of a cluster when a story or a path begins.
type Phase string

// The phases of a cluster.
const (
	Nothing Phase = "nothing" // only declared in git
	Founded Phase = "founded" // its objects exist, but no pod has been created
	Formed  Phase = "formed"  // it is healthy and up to date
)

// Beginning holds the arguments of the cluster directive.
type Beginning struct {
	Name     string
	Declared decide.Declared
	Phase    Phase
	Seed     int // of the simulated world's random generator
	// Together is true if the cluster was bootstrapped so that two members may join at the same time.
	Together bool
}

// Begin parses the arguments of the cluster directive.
func Begin(args []datadriven.CmdArg) (Beginning, error) {
	if len(args) == 0 {
		return Beginning{}, fmt.Errorf("the name of the cluster is missing")
	}
	b := Beginning{Name: args[0].Key, Declared: Declared(3), Phase: Formed}
	for _, arg := range args[1:] {
		var err error
		switch value := Value(arg); arg.Key {
		case "phase":
			b.Phase, err = phase(value)
		case "together":
			b.Together, err = strconv.ParseBool(value)
		case "seed":
			b.Seed, err = strconv.Atoi(value)
		default:
			err = SetSpec(&b.Declared, arg.Key, value)
		}
		if err != nil {
			return Beginning{}, err
		}
	}
	return b, nil
}

func phase(value string) (Phase, error) {
	switch p := Phase(value); p {
	case Nothing, Founded, Formed:
		return p, nil
	}
	return "", fmt.Errorf("unknown phase %q", value)
}

// Declared returns the default declaration of stories and paths.
func Declared(replicas int) decide.Declared {
	return decide.Declared{Replicas: replicas, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h1"}
}

// setSource changes the declared source of the cluster's data.
func setSource(d *decide.Declared, key, value string) (err error) {
	switch key {
	case "restore":
		d.Restore = decide.RestoreSource{From: Text(value), Digest: Text(value)}
		if value == "none" {
			d.Restore = decide.RestoreSource{}
		}
	case "recovery":
		d.Recovery, err = recovery(value)
		d.Recovery.Word = wordOf(d.Recovery)
	case "backup":
		d.Recovery.Backup = Text(value)
		d.Recovery.Digest += " " + d.Recovery.Backup
		d.Recovery.Word = wordOf(d.Recovery)
	case "lost":
		d.Recovery.Lost, err = ordinalSet(value)
		d.Recovery.Word = wordOf(d.Recovery)
	case "old-volumes":
		d.Recovery.OldVolumes = decide.Retention(value)
	case "refused":
		d.Recovery.Refused = Text(value)
	case "adopt":
		d.Adoption = decide.AdoptionOrder{PeerURL: d.Adoption.PeerURL}
		if d.Adoption.PeerURL == "" {
			d.Adoption.PeerURL = "https://a-0.a:2380"
		}
		d.Adoption.ClusterID, err = ID(value)
	case "release":
		d.Adoption.Release = nil
		for text := range strings.FieldsSeq(Text(value)) {
			var id decide.ID
			if id, err = ID(text); err != nil {
				return err
			}
			d.Adoption.Release = append(d.Adoption.Release, id)
		}
	case "abandon":
		d.Adoption.Abandon, err = strconv.ParseBool(value)
	}
	return err
}

// wordOf returns the digest of a request for recovery.
func wordOf(o decide.RecoveryOrder) string {
	if o.ClusterID == 0 {
		return ""
	}
	return fmt.Sprintf("%s lost=%s", o.Digest, o.Lost)
}

// recovery parses a recovery request, which names the cluster and the member, as in: c1 1.
func recovery(value string) (o decide.RecoveryOrder, err error) {
	if value == "none" {
		return o, nil
	}
	cluster, ordinal, _ := strings.Cut(value, " ")
	if o.ClusterID, err = ID(cluster); err != nil {
		return o, err
	}
	o.Ordinal, err = strconv.Atoi(ordinal)
	o.Digest, o.OldVolumes = value, decide.Retain
	return o, err
}

func ordinalSet(value string) (set decide.Ordinals, err error) {
	for text := range strings.FieldsSeq(Text(value)) {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, err
		}
		set = set.With(n)
	}
	return set, nil
}

// setBackups changes the declared backups.
func setBackups(d *decide.Declared, key, value string) (err error) {
	switch key {
	case "backups":
		d.BacksUp, err = strconv.ParseBool(value)
	case "before-upgrade":
		d.BacksUpBeforeUpgrade, err = strconv.ParseBool(value)
	case "before-deletion":
		d.BacksUpBeforeDeletion, err = strconv.ParseBool(value)
	case "verifies-backups":
		d.VerifiesBackups, err = strconv.ParseBool(value)
	case "backup-deadline":
		d.BackupDeadline, err = time.ParseDuration(value)
	case "backup-to":
		d.BackupTo = value
	}
	return err
}

// setDefragmentation changes the declared defragmentation.
func setDefragmentation(d *decide.Declared, key, value string) (err error) {
	order := &d.Defragmentation
	switch key {
	case "defragment-percent":
		order.MinFreePercent, err = strconv.Atoi(value)
	case "defragment-free":
		order.MinFree, err = Mebibytes(value)
	case "window":
		order.Windowed = value != "none"
	case "defragment":
		order.Request = Text(value)
	}
	return err
}

// Mebibytes parses a number of MiB and returns it in bytes.
func Mebibytes(value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	return n << 20, err
}

// SetSpec changes the declaration.
func SetSpec(d *decide.Declared, key, value string) (err error) {
	switch key {
	case "replicas":
		d.Replicas, err = strconv.Atoi(value)
	case "version":
		d.Version = value
	case "hash":
		d.SpecHash = value
	case "storage":
		d.Storage = value
	case "quota":
		d.Quota, err = Mebibytes(value)
	case "lifecycle":
		d.Lifecycle = decide.Lifecycle(value)
	case "suspended":
		d.Suspended, err = strconv.ParseBool(value)
	case "retention":
		d.Retention = decide.Retention(value)
	case "replaceAfter":
		d.ReplaceAfter, err = time.ParseDuration(value)
	case "restore", "recovery", "backup", "lost", "old-volumes", "refused", "adopt", "release", "abandon":
		err = setSource(d, key, value)
	case "backups", "before-upgrade", "before-deletion", "verifies-backups", "backup-deadline", "backup-to":
		err = setBackups(d, key, value)
	case "defragment-percent", "defragment-free", "window", "defragment":
		err = setDefragmentation(d, key, value)
	case "on-no-space":
		d.RecoversSpace = value == "Recover"
	case "corruption-check":
		d.CorruptionCheck, err = time.ParseDuration(value)
	case "orphaned":
		d.Orphaned = Text(value)
	case "renamedFrom":
		d.RenamedFrom = Text(value)
	case "confirmed":
		d.ConfirmedMembers = value
	case "problem":
		d.Problems = append(d.Problems, value)
	default:
		err = fmt.Errorf("the declaration does not have a field %s", key)
	}
	return err
}
