package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/visible"
)

func newRestore(std streams) *cobra.Command {
	var f readingFlags
	r := snapshot.Restoration{}
	c := &cobra.Command{
		Use:   "restore [[NAMESPACE/]CLUSTER [BACKUP]] --from FILE|URL --data-dir DIR",
		Short: "Make a data directory from a backup, without Kubernetes",
		Long: `Restore checks a backup and makes the data directory of a new member from it, with which
etcd starts a new cluster. It takes a file, or a store and a cluster.
` + helpWhich + `

The revision is raised, and all before it marked as compacted, so that watches start again
instead of silently missing events. Alarms are left out. The token, random unless it is given,
keeps members of the old cluster from joining by mistake.`,
		Example: `  quorate restore --from a.db --data-dir /var/lib/etcd
  quorate restore prod/a --from s3://backups/etcd --identity key.txt --data-dir /var/lib/etcd \
    --name a-0 --peer-url https://a-0.example.com:2380`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return restore(c.Context(), std, f, r, args) },
	}
	f.add(c, "file with a backup (compressed, encrypted, or neither), or URL of a store: "+store.Locations)
	f.addIdentity(c)
	f.timeout.addFor(c, "reading and checking the backup")
	c.Flags().StringVar(&r.DataDir, "data-dir", "", "directory that is made; it must be empty or not exist")
	require(c, "data-dir")
	c.Flags().StringVar(&r.Name, "name", "default", "name of the member, as etcd is started with it")
	c.Flags().StringVar(&r.PeerURL, "peer-url", "http://localhost:2380",
		"peer URL of the member, as etcd is started with it")
	c.Flags().StringVar(&r.InitialCluster, "initial-cluster", "",
		"NAME=URL of all members of the new cluster, with commas between them (default: this one alone)")
	c.Flags().StringVar(&r.Token, "initial-cluster-token", "",
		"token of the new cluster: the same for all its members (default: random)")
	c.Flags().Uint64Var(&r.Bump, "revision-bump", snapshot.DefaultBump,
		"by how much the revision is raised; 0 is for comparing data only")
	return c
}

func restore(ctx context.Context, std streams, f readingFlags, r snapshot.Restoration, args []string) error {
	if store.IsLocation(f.from) && len(args) == 0 {
		return usageError{errors.New(
			"--from names a store: name the cluster as well, as in quorate restore NAMESPACE/CLUSTER; " +
				"a file has no file://")}
	}
	if !store.IsLocation(f.from) && len(args) > 0 {
		return usageError{fmt.Errorf("--from %s is a file, which holds one backup: leave out %s", f.from,
			strings.Join(args, " "))}
	}
	var err error
	if r.DataDir, err = filepath.Abs(r.DataDir); err != nil {
		return usageError{fmt.Errorf("--data-dir: %w", err)}
	}
	r.InitialCluster = cmp.Or(r.InitialCluster, r.Name+"="+r.PeerURL)
	r.Token = cmp.Or(r.Token, rand.Text())
	reading, done, err := f.reading(std)
	if err != nil {
		return err
	}
	ctx, cancel := f.timeout.within(ctx)
	defer cancel()
	_, missing := os.Lstat(r.DataDir)
	said, err := f.restore(ctx, std, r, reading, args)
	done()
	if err != nil {
		if missing != nil {
			_ = os.Remove(r.DataDir) // which was made, and is empty: etcd would start with it as a new cluster
		}
		return fmt.Errorf("restore: %w", err)
	}
	return explainRestored(std, r, said)
}

// restored says what was restored: a file, or a backup of a store.
type restored struct {
	what  string
	facts snapshot.Facts
}

func (f *readingFlags) restore(
	ctx context.Context, std streams, r snapshot.Restoration, reading backup.Reading, args []string,
) (restored, error) {
	spool, err := snapshot.Workspace(r.DataDir)
	if err != nil {
		return restored{}, err
	}
	defer func() { _ = os.RemoveAll(spool) }()
	file := filepath.Join(spool, "snapshot.db")
	said, err := f.bring(ctx, std, file, reading, args)
	if err != nil {
		return restored{}, err
	}
	return said, snapshot.Restore(file, r)
}

// bring brings the backup into a file, checked.
func (f *readingFlags) bring(
	ctx context.Context, std streams, file string, reading backup.Reading, args []string,
) (restored, error) {
	if !store.IsLocation(f.from) {
		facts, err := backup.Decode(ctx, f.from, file, reading)
		return restored{f.from, facts}, err
	}
	bucket, m, err := f.find(ctx, std, args)
	if err != nil {
		return restored{}, err
	}
	defer bucket.Close()
	facts, err := backup.Fetch(ctx, bucket, m, file, reading)
	return restored{fmt.Sprintf("%s %s of cluster %s", m.Backup().Cluster, m.Backup().ID(), m.ClusterID), facts}, err
}

// explainRestored says what was restored, and how etcd is started with it.
func explainRestored(std streams, r snapshot.Restoration, said restored) error {
	facts := said.facts
	minor := visible.Line(strings.TrimSuffix(facts.ClusterVersion, ".0"))
	fmt.Fprintf(std.out, "restored %s into %s\n", said.what, r.DataDir)
	fmt.Fprintf(std.out, "it holds revision %d; new writes come after %d\n", facts.Revision,
		facts.Revision+int64(r.Bump))
	fmt.Fprintf(std.out, "start etcd %s, or the next minor version, as the user who owns the directory, with your "+
		"listen, client and TLS flags and\n", cmp.Or(minor, "of the version that it was taken from"))
	for _, flag := range []struct{ name, value string }{
		{"name", r.Name}, {"data-dir", r.DataDir}, {"initial-advertise-peer-urls", r.PeerURL},
		{"initial-cluster", r.InitialCluster}, {"initial-cluster-token", r.Token},
	} {
		fmt.Fprintf(std.out, "  --%s=%s\n", flag.name, quoted(flag.value))
	}
	if facts.Auth {
		fmt.Fprintln(std.out, "authentication is on, with the users and passwords of that time")
	}
	if len(facts.Alarms) > 0 {
		fmt.Fprintf(std.out, "left out these alarms: %s\n", visible.Line(decide.Enumerate(facts.Alarms)))
	}
	if facts.Corrupt() {
		fmt.Fprintln(std.err, "quorate: members held different data when the backup was taken: compare what was "+
			"restored with what you know")
	}
	return nil
}

// quoted is a word of a shell's command line.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:=,@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(visible.Line(word), "'", `'\''`) + "'"
}
