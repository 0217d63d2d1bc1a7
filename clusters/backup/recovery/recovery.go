// Package recovery creates a new cluster from the remains of a cluster that has lost its majority: the data directory
// of one member.
package recovery

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

// Order specifies the survivor to recover and the member to create.
type Order struct {
	// Into is the member to create. Its data directory is that of the survivor. If other fields are empty, they are
	// filled in from the survivor.
	Into snapshot.Restoration
	// ClusterID is the ID of the lost cluster. Members of other clusters are rejected.
	ClusterID uint64
	// Dir is the working directory, which needs room for twice the data. The default is the data directory.
	Dir      string
	Etcd     etcdprocess.Program
	Inspect  backup.Inspector
	Files    Files
	Progress backup.Progress
}

// Recovered is a member that was created from the surviving data.
type Recovered struct {
	Survivor snapshot.Survivor
	// Into describes the created member.
	Into snapshot.Restoration
	// Facts describes the recovered data before its revision was raised.
	Facts snapshot.Facts
	// Made is the created member, before it is put in place. If it is not put in place, it is removed.
	Made *snapshot.Made

	held *disk.Shared
}

// Suspect reports whether etcd had found that members held different data. It checks both the survivor and the
// recovered data, because the survivor's database may be behind its log.
func (r Recovered) Suspect() bool { return r.Survivor.Facts.Corrupt() || r.Facts.Corrupt() }

// Place replaces the survivor with the new member and keeps the survivor in the data directory under the name aside.
func (r Recovered) Place(aside string) error { return r.Made.Exchange(aside, r.held) }

// ErrUnfit is returned for a member that must not be used to create a new cluster.
var ErrUnfit = errors.New("this member cannot be used to create a cluster")

// firstSound contains, for each minor version, the first etcd version in which --force-new-cluster works correctly:
// alone for clusters without learners, and withLearners for clusters with learners (etcd issues 20009, 20055, 20071).
var firstSound = []struct{ alone, withLearners etcdversion.Version }{
	{etcdversion.Must("3.5.22"), etcdversion.Must("3.5.25")},
	{etcdversion.Must("3.6.1"), etcdversion.Must("3.6.6")},
	{etcdversion.Must("3.7.0"), etcdversion.Must("3.7.0")},
}

// leastSound returns the first version in which --force-new-cluster works correctly for the member, with the same minor
// version as v if possible.
func leastSound(v etcdversion.Version, s snapshot.Survivor) etcdversion.Version {
	least := firstSound[0]
	for _, sound := range firstSound[1:] {
		if v.MajorMinor().Compare(sound.alone.MajorMinor()) >= 0 {
			least = sound
		}
	}
	if s.Learners > 0 {
		return least.withLearners
	}
	return least.alone
}

// Check is like CheckDeclared, but also returns etcdprocess.ErrVersion for etcd's next minor version, which converts
// the data. If the data's own minor version cannot recover clusters, Check accepts the next minor version.
func Check(s snapshot.Survivor, with etcdprocess.Program) error {
	err := CheckDeclared(s, with)
	was, unknown := s.Facts.MinorVersion()
	if errors.Is(err, ErrUnfit) || unknown != nil || was.Compare(firstSound[0].alone.MajorMinor()) < 0 ||
		with.Version.MajorMinor() == was {
		return err
	}
	return fmt.Errorf("%w: the program is etcd %s, but the cluster ran etcd %s; use etcd %[3]s (--etcd). The "+
		"result can then be started with etcd %[3]s or %s", etcdprocess.ErrVersion, with.Version, was, was.Next(1))
}

// CheckDeclared returns ErrUnfit for a member that must not be used to create a new cluster, and etcdprocess.ErrVersion
// if the new cluster must not be created with this etcd. The etcd has the version that is declared for the new cluster.
func CheckDeclared(s snapshot.Survivor, with etcdprocess.Program) error {
	if s.Learner {
		return fmt.Errorf("%w: it is a learner, which may lack many acknowledged writes; use a voter "+
			"or a backup", ErrUnfit)
	}
	if err := with.Suits(s.Facts); err != nil {
		return err
	}
	if least := leastSound(with.Version, s); !with.Version.AtLeast(least) {
		return fmt.Errorf("%w: etcd %s may lose data with --force-new-cluster; use %s or later",
			etcdprocess.ErrVersion, with.Version, least)
	}
	return nil
}

// Recover creates the first member of a new cluster next to the survivor, and calls place to put the new member in
// place. Recover itself does not change the survivor. etcd cannot start on the data directory until Recover returns.
func Recover(ctx context.Context, o Order, place func(Recovered) error) error {
	return o.rescue(ctx, backup.Order{Slot: time.Now()},
		func(held *disk.Shared, s snapshot.Survivor, taken backup.Taken) error {
			return o.make(held, s, taken, place)
		})
}

// make creates the member from the snapshot and calls place.
func (o Order) make(
	held *disk.Shared, s snapshot.Survivor, taken backup.Taken, place func(Recovered) error,
) error {
	if err := o.complete(s); err != nil {
		return err
	}
	o.Progress.Step("create the member")
	made, err := snapshot.Make(taken.File, o.Into)
	if err != nil {
		return err
	}
	defer made.Remove()
	return place(Recovered{s, o.Into, taken.Manifest.Snapshot.Facts, made, held})
}

// Rescue takes the requested backup from the survivor and passes it to put. It does not change the survivor. etcd
// cannot start on the survivor until Rescue returns.
func Rescue(ctx context.Context, o Order, ordered backup.Order, put func(backup.Taken) error) error {
	return o.rescue(ctx, ordered, func(_ *disk.Shared, s snapshot.Survivor, taken backup.Taken) error {
		return put(fromStopped(taken, s))
	})
}

// fromStopped completes the manifest of a backup of a stopped member. Only that member's own data was compared.
func fromStopped(taken backup.Taken, s snapshot.Survivor) backup.Taken {
	taken.Manifest.Member = s.Name
	taken.Manifest.Snapshot.ProvenBy = nil
	taken.Manifest.Snapshot.Unproven = "it is the data of a stopped member"
	return taken
}

// rescue takes a snapshot of the survivor's data and passes it to use. To take the snapshot, it starts a copy of the
// survivor, with its whole log, as a single-member cluster that other processes cannot reach. It then removes the copy.
func (o Order) rescue(
	ctx context.Context, ordered backup.Order, use func(*disk.Shared, snapshot.Survivor, backup.Taken) error,
) error {
	survivor, held, err := o.hold(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := Check(survivor, o.Etcd); err != nil {
		return err
	}
	work, err := o.workspace()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	ordered.Spool, ordered.Inspect, ordered.Progress = work, o.Inspect, o.Progress
	taken, err := o.take(ctx, survivor, ordered)
	if err != nil {
		return err
	}
	return use(held, survivor, taken)
}

// hold keeps etcd from starting on the survivor, and reads the survivor's files.
func (o Order) hold(ctx context.Context) (s snapshot.Survivor, held *disk.Shared, err error) {
	if held, err = snapshot.Hold(o.Into.DataDir); err != nil {
		return s, nil, err
	}
	s, err = o.Files.Survivor(ctx, o.Into.DataDir)
	if err == nil && s.ClusterID != o.ClusterID {
		err = fmt.Errorf("%w: it belongs to cluster %x, not %x", ErrUnfit, s.ClusterID, o.ClusterID)
	}
	if err != nil {
		held.Close()
		return s, nil, err
	}
	return s, held, nil
}

// maxNameBytes and maxPeerURLs limit the name and the peer URLs that are read from a survivor's data, because
// --initial-cluster repeats the name for each URL.
const maxNameBytes, maxPeerURLs = 4096, 64

// complete fills in the order's empty fields from the survivor.
func (o *Order) complete(s snapshot.Survivor) error {
	into := &o.Into
	into.Name = cmp.Or(into.Name, s.Name)
	into.PeerURL = cmp.Or(into.PeerURL, strings.Join(s.PeerURLs, ","))
	into.Token = cmp.Or(into.Token, rand.Text())
	into.Beside = true
	if into.Name == "" || into.PeerURL == "" {
		return fmt.Errorf("%w: its data does not contain its name and peer URL; specify them", ErrUnfit)
	}
	if len(into.Name) > maxNameBytes || strings.Count(into.PeerURL, ",") >= maxPeerURLs {
		return fmt.Errorf("%w: its data contains a name longer than %d bytes, or more than %d peer URLs; "+
			"specify both", ErrUnfit, maxNameBytes, maxPeerURLs)
	}
	into.InitialCluster = cmp.Or(into.InitialCluster, InitialCluster(into.Name, strings.Split(into.PeerURL, ",")))
	return nil
}

// InitialCluster returns the value of etcd's --initial-cluster flag for a single member: NAME=URL,…
func InitialCluster(name string, peerURLs []string) string {
	var urls []string
	for _, url := range peerURLs {
		urls = append(urls, name+"="+url)
	}
	return strings.Join(urls, ",")
}

func (o Order) workspace() (string, error) {
	if o.Dir == "" {
		return snapshot.WorkspaceBeside(o.Into.DataDir)
	}
	return os.MkdirTemp(o.Dir, "recover-")
}

// take takes a snapshot of a copy of the survivor, and removes the copy.
func (o Order) take(ctx context.Context, survivor snapshot.Survivor, ordered backup.Order) (backup.Taken, error) {
	dataDir := filepath.Join(ordered.Spool, "data")
	defer func() { _ = os.RemoveAll(dataDir) }()
	if err := o.copyMember(ctx, survivor, dataDir); err != nil {
		return backup.Taken{}, err
	}
	o.Progress.Step("start etcd")
	server, err := o.Etcd.Start(dataDir, "--force-new-cluster")
	if err != nil {
		return backup.Taken{}, fmt.Errorf("start etcd: %w", err)
	}
	defer server.Stop()
	return takeFrom(ctx, server, survivor, ordered)
}

// copyMember copies the survivor in such a way that an etcd started on the copy as a single member keeps the whole log.
func (o Order) copyMember(ctx context.Context, survivor snapshot.Survivor, dataDir string) error {
	o.Progress.Step("copy the member")
	if err := snapshot.CopyMember(ctx, o.Into.DataDir, dataDir); err != nil {
		return fmt.Errorf("copy the member: %w", err)
	}
	turnsAuthOn, err := o.Files.CommitLog(ctx, dataDir)
	switch {
	case err != nil:
		return fmt.Errorf("keep the member's whole log: %w", err)
	case !survivor.Facts.Auth && turnsAuthOn:
		return fmt.Errorf("%w: the end of its log enables authentication, but its database does not include that yet; "+
			"use a different member or a backup", ErrUnfit)
	case !survivor.Facts.Auth:
		return nil
	}
	if err := o.Files.DisableAuth(ctx, dataDir); err != nil {
		return fmt.Errorf("disable authentication in the copy: %w", err)
	}
	return nil
}

// takeFrom takes a snapshot from the etcd that is running on the copy.
func takeFrom(
	ctx context.Context, server *etcdprocess.Server, survivor snapshot.Survivor, ordered backup.Order,
) (backup.Taken, error) {
	clients := &etcd.Clients{}
	defer clients.Close()
	if _, err := server.Ready(ctx, clients); err != nil {
		return backup.Taken{}, err
	}
	if err := isOf(clients.Observe(ctx, server.Cluster()).Membership, survivor); err != nil {
		return backup.Taken{}, err
	}
	taken, err := backup.Take(ctx, clients.Source(server.Cluster()), ordered)
	if err != nil {
		return backup.Taken{}, err
	}
	s := &taken.Manifest.Snapshot
	if s.Hash != nil && s.Unproven != "" {
		return backup.Taken{}, fmt.Errorf("compare the snapshot with etcd: %s", s.Unproven)
	}
	if !survivor.Facts.Auth {
		return taken, nil
	}
	all, err := snapshot.EnableAuth(taken.File)
	if err != nil {
		return backup.Taken{}, fmt.Errorf("enable authentication again: %w", err)
	}
	s.Auth, s.Bytes, s.SHA256 = true, all.Size(), all.Sum()
	return taken, nil
}

// isOf returns an error unless the started etcd is the survivor, as the only member, and has applied the whole log.
func isOf(m decide.Membership, s snapshot.Survivor) error {
	if !m.Known || len(m.Members) != 1 || uint64(m.ClusterID) != s.ClusterID || uint64(m.Members[0].ID) != s.MemberID {
		return fmt.Errorf("the started etcd is not member %x of cluster %x, or not its only member", s.MemberID,
			s.ClusterID)
	}
	if applied := m.Members[0].Applied; applied < s.End.Index {
		return fmt.Errorf("etcd has applied the log up to %d, but the log ends at %d; the rest would be lost", applied,
			s.End.Index)
	}
	return nil
}
