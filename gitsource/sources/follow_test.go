package sources

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/reconcile"
)

// TestFollow checks that each source is read repeatedly and independently: the declarations of one source are available
// while another source hangs. An error is reported once when it starts and once when it ends. Unchanged sources are not
// reported.
func TestFollow(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	repository := gittest.NewRepository(t)
	first := repository.Declare("a")
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections but does not respond
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	hanging := at("http://" + hangs.Addr().String() + "/x.git")
	hanging.Timeout = time.Hour
	set := &Set{Sources: []Source{at(repository.Dir), hanging}, Slots: NewSlots(2)}
	ctx, stop := context.WithCancel(t.Context())
	known, ended := make(chan reconcile.Desired, 100), make(chan struct{})
	go func() {
		defer close(ended)
		set.Follow(ctx, 100*time.Millisecond, func(d reconcile.Desired) { known <- d })
	}()
	next := func(what string, is func(reconcile.Desired) bool) {
		t.Helper()
		for {
			select {
			case d := <-known:
				if d.Sources[1].Unread == nil {
					t.Errorf("%s: a source that hangs counts as read", what)
				}
				if is(d) {
					return
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s is not reported", what)
			}
		}
	}
	declares := func(name, commit string) func(reconcile.Desired) bool {
		return func(d reconcile.Desired) bool {
			return len(d.Clusters) == 1 && d.Clusters[0].Cluster.Name == name && strings.Contains(d.Clusters[0].Revision, commit)
		}
	}
	next("the first revision", declares("a", first))
	next("the next revision", declares("b", repository.Declare("b")))
	if err := os.Rename(repository.Dir, repository.Dir+"-away"); err != nil {
		t.Fatal(err)
	}
	next("the missing repository", func(d reconcile.Desired) bool { return len(d.Clusters) == 0 && d.Sources[0].Unread != nil })
	if err := os.Rename(repository.Dir+"-away", repository.Dir); err != nil {
		t.Fatal(err)
	}
	next("the restored repository", declares("b", ""))
	stop()
	<-ended
}

// TestUnchangedSourceIsNotReported checks that an unchanged source is reported only if its history could not be read
// before.
func TestUnchangedSourceIsNotReported(t *testing.T) {
	read := result{at: momentOf(time.Now())}
	read.desired.Revision.Commit = "1"
	s := read
	if s.take(read) {
		t.Error("an unchanged revision is reported")
	}
	other := read
	other.desired.Revision.Commit = "2"
	if !s.take(other) || s.take(other) {
		t.Error("a different revision is not reported, or is reported twice")
	}
	failed := result{err: fmt.Errorf("no route"), at: momentOf(time.Now())}
	if !s.take(failed) || s.take(failed) || !s.take(other) {
		t.Error("an error is not reported, or is reported twice, or its end is not reported")
	}
	s.ancestry = &ancestry{loops: true, asked: map[string]*question{"0": answered(nil)}}
	if _, err := s.ancestry.descendsFrom(t.Context(), "main@sha1:0"); !errors.Is(err, reconcile.ErrReading) {
		t.Errorf("got %v, want ErrReading until the source is read again", err)
	}
	other.ancestry = &ancestry{confirmed: time.Now().Add(time.Second)}
	if s.take(other) {
		t.Error("an unchanged revision is reported after a second read")
	}
	if follows, err := s.ancestry.descendsFrom(t.Context(), "main@sha1:0"); follows || err != nil {
		t.Errorf("after the second read: descends %t, error %v", follows, err)
	}
	q := &question{done: make(chan struct{}), err: fmt.Errorf("no route")}
	s.ancestry = &ancestry{asked: map[string]*question{"0": q}}
	if s.take(other) {
		t.Error("an unfinished ancestry check is reported")
	}
	if close(q.done); !s.take(other) || len(s.ancestry.asked) > 0 {
		t.Error("a failed ancestry check is not repeated")
	}
}

// answered returns a question that was answered with no or, if err is set, could not be answered.
func answered(err error) *question {
	q := &question{asked: time.Now(), done: make(chan struct{}), cancel: func() {}, err: err}
	close(q.done)
	return q
}

// TestUnchangedSourceUpdatesReadTime checks that the time of the last read or failure is updated even if nothing else
// has changed.
func TestUnchangedSourceUpdatesReadTime(t *testing.T) {
	first, again := time.Unix(1793534400, 0), time.Unix(1793534410, 0)
	for what, err := range map[string]error{"a revision": nil, "an error": errors.New("no route")} {
		s, later := result{err: err, at: momentOf(first)}, result{err: err, at: momentOf(again)}
		s.desired.Revision.Commit, later.desired.Revision.Commit = "1", "1"
		told := s.place()
		if s.take(later) || !told.At().Equal(again) {
			t.Errorf("%s has read time %s, want %s", what, told.At(), again)
		}
	}
}

// TestLateHistoryReadGetsFullTimeout checks that a history read gets the full timeout even if the loop first needs it
// hours after it read the revision.
func TestLateHistoryReadGetsFullTimeout(t *testing.T) {
	repository := gittest.NewRepository(t)
	before := repository.Declare("a")
	repository.Declare("b")
	set := &Set{Sources: []Source{at(repository.Dir)}, Slots: NewSlots(1)}
	d := set.unread()[0].read(t.Context(), &set.readers[0]).ancestry
	d.loops, d.turn = true, time.Now().Add(-time.Hour)
	q := d.ask(t.Context(), before)
	if <-q.done; q.err != nil || !q.follows {
		t.Errorf("descends from %s: %t, %v", before, q.follows, q.err)
	}
}

// TestFailedHistoryReadWaitsForNextFetch checks that a revision whose history could not be read is not used until the
// source is read again, because another process may have read a newer revision. After that, the ancestry is reported as
// unknown, even if the history check is repeated.
func TestFailedHistoryReadWaitsForNextFetch(t *testing.T) {
	q := answered(fmt.Errorf("no route"))
	s := result{at: momentOf(time.Now()), ancestry: &ancestry{loops: true, asked: map[string]*question{"0": q}}}
	s.desired.Revision.Commit = "1"
	if _, err := s.ancestry.descendsFrom(t.Context(), "main@sha1:0"); !errors.Is(err, reconcile.ErrReading) {
		t.Errorf("before the source is read again: %v", err)
	}
	again := s
	again.ancestry = &ancestry{loops: true, confirmed: q.asked.Add(time.Second)}
	if !s.take(again) {
		t.Error("the ancestry check is not repeated")
	}
	second := s.ancestry.ask(t.Context(), "0")
	<-second.done
	if _, err := s.ancestry.descendsFrom(t.Context(), "main@sha1:0"); second == q || err == nil || errors.Is(err, reconcile.ErrReading) {
		t.Errorf("after the source was read again: %v", err)
	}
}

// TestForcePushBeforeEachReadIsRefused checks that a revision that does not descend from an applied revision is
// refused, even if every read returns a different revision and some reads fail. A failed read does not discard known
// ancestry.
func TestForcePushBeforeEachReadIsRefused(t *testing.T) {
	repository := gittest.NewRepository(t)
	root := repository.Declare("root")
	applied := "main@sha1:" + repository.Declare("applied")
	set := &Set{Sources: []Source{at(repository.Dir)}, Slots: NewSlots(1)}
	s := set.unread()[0]
	read := func() {
		next := s.read(t.Context(), &set.readers[0])
		if next.ancestry != nil {
			next.ancestry.loops = true
		}
		s.take(next)
	}
	forcePush := func(name string) {
		repository.Git("reset", "--quiet", "--hard", root)
		repository.Declare(name)
		read()
	}
	fail := func() {
		if err := os.Rename(repository.Dir, repository.Dir+"-away"); err != nil {
			t.Fatal(err)
		}
		if read(); s.err == nil {
			t.Fatal("a missing repository was read")
		}
		if err := os.Rename(repository.Dir+"-away", repository.Dir); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, known bool) {
		t.Helper()
		follows, err := s.ancestry.descendsFrom(t.Context(), applied)
		if follows || known != (err == nil) || !known && !errors.Is(err, reconcile.ErrReading) {
			t.Errorf("%s: descends %t, error %v", when, follows, err)
		}
	}
	forcePush("a")
	check("another process may have read a newer revision", false)
	forcePush("b")
	check("read again, at a different revision", true)
	fail()
	forcePush("c")
	check("after a failed read", true)
	forcePush("d")
	forcePush("e")
	check("after a revision that no pass has used", true)
	end, err := set.Slots.Take(t.Context(), "another")
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	before := s.ancestry
	failed := s
	failed.err = errors.New("no route")
	s.take(failed)
	back := failed
	back.err, back.ancestry = nil, newAncestry(s.source, s.slots, s.desired.Revision, time.Now())
	s.take(back)
	if check("the same revision after a failed read", true); s.ancestry != before {
		t.Error("the history is searched again")
	}
}
