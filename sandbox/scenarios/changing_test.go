package scenarios

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// changeRuns is the number of times each change is measured.
const changeRuns = 3

// settling is the pause between two changes. etcd accepts a new member only after all other members have been connected
// for five seconds.
const settling = 6 * time.Second

// change is a change to a running cluster with three or five members.
type change struct {
	name string
	// spec is the declared spec. If damage is not nil, the change is a repair after that damage.
	spec   []string
	damage func(*world)
	// script makes the same change. Because it knows the steps in advance, no tool can be faster.
	script func(*script)
	// members is the final number of members. done compares the state before with the current state, and reports
	// whether the change is complete.
	members int
	done    func(before, now facts) bool
}

var changes = []change{
	{"grow_3_to_5", []string{"replicas: 5"}, nil, func(s *script) { s.join(3); s.join(4) }, 5, func(_, _ facts) bool { return true }},
	{"shrink_5_to_3", []string{three}, nil, (*script).shrink, 3, func(_, now facts) bool { return len(now.volumes) == 3 && len(now.pods) == 3 }},
	{"roll_3", []string{three, otherOptions}, nil, (*script).roll, 3, func(before, now facts) bool { return changed(before.pods, now.pods) == 3 }},
	{
		"replace_1", []string{three, otherOptions}, func(w *world) { w.loseVolume(w.follower()) }, (*script).replace, 3,
		func(before, now facts) bool {
			return len(now.volumes) == 3 && changed(before.volumes, now.volumes) == 1
		},
	},
}

// BenchmarkChanges measures changes to a running cluster under load, from the git push until every member is a voter
// and obsolete objects have been deleted. In the same run, it measures a script that already knows the steps, on a
// separate cluster. etcd sets a lower bound, because it accepts a new member only after all voters have been connected
// for five seconds.
func BenchmarkChanges(b *testing.B) {
	took, floor, pauses, failed := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}, map[string]float64{}
	for range changeRuns {
		w, scripted := newWorld(b), newWorld(b)
		for _, w := range []*world{w, scripted} {
			w.declare(modern, three)
			w.converge()
		}
		for _, c := range changes {
			var p *process
			seconds, writes := w.measure(c, func() {
				w.declare(modern, c.spec...)
				p = w.start(outside, "run", "--until-converged", "--timeout", patience.String())
			})
			p.wait().requireCode(b, exitDone)
			took[c.name], pauses[c.name] = append(took[c.name], seconds), append(pauses[c.name], float64(writes.longest.Milliseconds()))
			failed[c.name] += float64(writes.failed)
			seconds, _ = scripted.measure(c, func() { c.script(scripted.newScript()) })
			floor[c.name] = append(floor[c.name], seconds)
		}
		w.deleteAll()
		scripted.deleteAll()
	}
	for _, c := range changes {
		figure(c.name+"_seconds", median(took[c.name]), "s")
		figure(c.name+"_floor_seconds", median(floor[c.name]), "s")
		figure(c.name+"_floor_ratio", median(took[c.name])/median(floor[c.name]), "ratio")
		figure(c.name+"_longest_without_write", slices.Max(pauses[c.name]), "ms")
		figure(c.name+"_failed_writes", failed[c.name]/changeRuns, "writes")
	}
}

// measure changes the cluster while applications write. It returns the duration of the change, in seconds, and a
// summary of the writes.
func (w *world) measure(c change, run func()) (float64, interruption) {
	w.t.Helper()
	time.Sleep(settling)
	before, err := w.facts(0)
	if err != nil {
		w.t.Fatal(err)
	}
	writes := w.watchWrites(5)
	start := time.Now()
	if c.damage != nil {
		c.damage(w)
	}
	run()
	for {
		now, err := w.facts(c.members)
		if err == nil && c.done(before, now) {
			break
		}
		if time.Since(start) > patience {
			w.t.Fatalf("%s: not within %s: %+v, %v", c.name, patience, now, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	seconds := time.Since(start).Seconds()
	return seconds, writes.end()
}

// facts holds the UIDs of a cluster's pods and volumes.
type facts struct{ pods, volumes map[string]string }

// facts observes cluster a. It returns an error unless etcd lists exactly the given number of members and all of them
// respond as voters that know a leader. If members is 0, these checks are skipped.
func (w *world) facts(members int) (facts, error) {
	f := facts{w.podUIDs("a"), w.volumeUIDs("a")}
	if members == 0 {
		return f, nil
	}
	client, err := w.application(members)
	if err != nil {
		return f, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(w.ctx(), answerTimeout)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		return f, err
	}
	if len(list.Members) != members {
		return f, fmt.Errorf("%d members", len(list.Members))
	}
	for _, endpoint := range client.Endpoints() {
		if err := votes(ctx, client, endpoint); err != nil {
			return f, err
		}
	}
	return f, nil
}

func votes(ctx context.Context, client *clientv3.Client, endpoint string) error {
	answer, err := client.Status(ctx, endpoint)
	if err != nil {
		return err
	}
	if answer.Leader == 0 || answer.IsLearner {
		return fmt.Errorf("%s does not vote yet", endpoint)
	}
	return nil
}

// follower returns the follower with the highest ordinal.
func (w *world) follower() string {
	w.t.Helper()
	if w.status("a").Leader == "a-2" {
		return "a-1"
	}
	return "a-2"
}
