package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// stoppedFiles describes the members in data directories, by the names of these directories.
type stoppedFiles map[string]snapshot.Survivor

func (f stoppedFiles) Survivor(_ context.Context, dataDir string) (snapshot.Survivor, error) {
	return f[filepath.Base(dataDir)], nil
}
func (stoppedFiles) CommitLog(context.Context, string) (bool, error) { panic("not used") }
func (stoppedFiles) DisableAuth(context.Context, string) error       { panic("not used") }

// stoppedMember returns a voter of cluster 0xc1 with three voters, whose log ends at a position.
func stoppedMember(id, term, index uint64) snapshot.Survivor {
	return snapshot.Survivor{Identity: snapshot.Identity{ClusterID: 0xc1, MemberID: id}, Name: fmt.Sprint("old-", id),
		Voters: map[uint64]string{1: "old-1", 2: "old-2", 3: "old-3"}, End: snapshot.Position{Term: term, Index: index},
		Facts: snapshot.Facts{ClusterVersion: "3.6.0"}}
}

// TestLatestHasEveryAcknowledgedWrite checks which of several stopped members is copied, and whether it is known to have
// every acknowledged write.
func TestLatestHasEveryAcknowledgedWrite(t *testing.T) {
	with := func(s snapshot.Survivor, change func(*snapshot.Survivor)) snapshot.Survivor {
		change(&s)
		return s
	}
	learner := func(s *snapshot.Survivor) { s.Learner = true }
	later := func(s *snapshot.Survivor) { // member 4 has become a voter
		s.Voters = map[uint64]string{1: "old-1", 2: "old-2", 3: "old-3", 4: "old-4"}
	}
	for name, test := range map[string]struct {
		members []snapshot.Survivor
		want    uint64 // the copied member, or zero for an error
		lag     string
		wrong   error
		says    string
	}{
		"all":                  {members: []snapshot.Survivor{stoppedMember(1, 2, 9), stoppedMember(2, 2, 10), stoppedMember(3, 2, 8)}, want: 2},
		"a higher term":        {members: []snapshot.Survivor{stoppedMember(1, 2, 90), stoppedMember(2, 3, 10)}, want: 2},
		"majority":             {members: []snapshot.Survivor{stoppedMember(3, 2, 9), stoppedMember(1, 2, 9)}, want: 3},
		"minority":             {members: []snapshot.Survivor{stoppedMember(2, 2, 9)}, want: 2, lag: "this is the data of 1 of 3 voters, and 2 are required. Add the data of old-1 (1) or old-3 (3)"},
		"a removed member":     {members: []snapshot.Survivor{stoppedMember(2, 2, 9), stoppedMember(9, 2, 8)}, want: 2, lag: "this is the data of 1 of 3 voters"},
		"a learner":            {members: []snapshot.Survivor{stoppedMember(2, 2, 9), with(stoppedMember(7, 2, 10), learner)}, want: 2, lag: "this is the data of 1 of 3 voters"},
		"majority and learner": {members: []snapshot.Survivor{stoppedMember(2, 2, 9), stoppedMember(1, 2, 9), with(stoppedMember(7, 2, 10), learner)}, want: 2},
		"an older list of voters": {members: []snapshot.Survivor{stoppedMember(1, 2, 9), with(stoppedMember(2, 2, 10), later)}, want: 2,
			lag: "this is the data of 2 of 4 voters, and 3 are required. Add the data of old-3 (3) or old-4 (4)"},
		"a new voter that has not applied its promotion": {members: []snapshot.Survivor{with(stoppedMember(1, 2, 9), later), with(stoppedMember(2, 2, 9), later),
			with(stoppedMember(4, 2, 10), learner)}, want: 1, lag: "this is the data of 2 of 4 voters"},
		"voters that may differ": {members: []snapshot.Survivor{stoppedMember(1, 2, 9),
			with(stoppedMember(2, 2, 10), func(s *snapshot.Survivor) { s.MembersMayDiffer = true })}, want: 2, lag: "the log of old-2 ends with a change to the cluster's members"},
		"promoted members that are stored as learners": {members: []snapshot.Survivor{with(stoppedMember(1, 2, 9), func(s *snapshot.Survivor) {
			s.Voters, s.Learners = map[uint64]string{1: "old-1"}, 2
		})}, want: 1, lag: "the member list of old-1 contains learners, which may be voters"},
		"a log without committed entries": {members: []snapshot.Survivor{stoppedMember(2, 3, 10), with(stoppedMember(1, 2, 9), func(s *snapshot.Survivor) {
			s.Committed = 20
		})}, want: 2, lag: "old-1 has committed entries up to index 20, but the log of old-2 ends at index 10"},
		"only a learner": {members: []snapshot.Survivor{with(stoppedMember(2, 2, 9), learner)}, wrong: ErrUnfit, says: "only the data of learners"},
		"twice":          {members: []snapshot.Survivor{stoppedMember(2, 2, 9), stoppedMember(1, 2, 9), stoppedMember(2, 2, 8)}, wrong: ErrUnfit, says: "0 and DIR/2 both hold the data of member 2; omit the older data"},
		"another cluster": {members: []snapshot.Survivor{stoppedMember(2, 2, 9), with(stoppedMember(1, 2, 9), func(s *snapshot.Survivor) { s.ClusterID = 0xc2 })},
			wrong: ErrUnfit, says: "DIR/1 belongs to cluster c2, not c1"},
		"etcd 3.3": {members: []snapshot.Survivor{with(stoppedMember(2, 2, 9), func(s *snapshot.Survivor) { s.Facts.ClusterVersion = "3.3.0" })}, wrong: etcdprocess.ErrVersion,
			says: "DIR/0 is from etcd 3.3. Start the source with its own tool, upgrade it to etcd 3.5, one minor version at a time, and stop it again"},
	} {
		volume, files := t.TempDir(), stoppedFiles{}
		var dirs []string
		for i, s := range test.members {
			dir := filepath.Join(volume, fmt.Sprint(i))
			if err := snapshot.CopyMember(t.Context(), survivor(t).Into.DataDir, dir); err != nil {
				t.Fatal(err)
			}
			dirs, files[filepath.Base(dir)] = append(dirs, dir), s
		}
		got, err := Latest(t.Context(), files, 0xc1, dirs)
		for _, dir := range dirs {
			if is := locked(t, snapshot.Database(dir)); is != (err == nil) {
				t.Errorf("%s: %s is locked: %t, with %v", name, dir, is, err)
			}
		}
		got.Close()
		for _, dir := range dirs {
			if locked(t, snapshot.Database(dir)) {
				t.Errorf("%s: %s is still locked", name, dir)
			}
		}
		if test.wrong != nil {
			if want := strings.ReplaceAll(test.says, "DIR", volume); !errors.Is(err, test.wrong) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got  %v\nwant %s", name, err, want)
			}
			continue
		}
		if err != nil || got.Survivor.MemberID != test.want || (got.Lag != nil) != (test.lag != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got.Lag != nil && (!errors.Is(got.Lag, ErrLag) || !strings.Contains(got.Lag.Error(), test.lag)) {
			t.Errorf("%s: got  %v\nwant %s", name, got.Lag, test.lag)
		}
	}
}

// locked reports whether etcd would wait for a database.
func locked(t *testing.T, path string) bool {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stop() // does not wait
	unlock, err := disk.Lock(ctx, path, nil)
	if err == nil {
		unlock()
	} else if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return err != nil
}

// TestUnreadableNamesOwner checks that the owner of an unreadable directory is reported, even if the file is below it.
func TestUnreadableNamesOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := Unreadable(&fs.PathError{Op: "open", Path: dir, Err: fs.ErrPermission})
	want := fmt.Sprintf("open %s: permission denied: %[1]s belongs to user %d and has mode 0700, but this process runs as user %[2]d. Run it as user %[2]d", dir, os.Getuid())
	if err.Error() != want || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if missing := errors.New("x"); Unreadable(missing).Error() != "x" {
		t.Error("the error is different")
	}
}
