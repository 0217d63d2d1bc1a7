package decide_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestEveryRoadOfSmallWorlds checks the forecasts of small worlds (of all of them in "make soak") in which etcd lists
// its members. Only possible worlds are included: observing them again must return the same state. A forecast must end,
// must not violate any invariant, and must match the decisions and actions of consecutive passes. At each step, the
// forecast from the observable state must be the rest of the first forecast: hidden state must not affect it.
// TestForecastIsFinite in simulate covers worlds with unknown members.
func TestEveryRoadOfSmallWorlds(t *testing.T) {
	var all roads
	t.Run("all", func(t *testing.T) {
		for _, size := range []struct {
			ordinals int
			keep     func(slot) bool
			flags    []string
			every    int
		}{
			{1, anything, slices.DeleteFunc(slices.Clone(flags), worksOnVolume), 37},
			{2, telling, []string{"", "drift", "fewer", "more", "newer", "stopped", "deleted", "restarting", "joining together"}, 71},
			{3, coarse, []string{"", "more", "fewer", "restarting", "reshaped", "newer", "deleted"}, 37},
		} {
			for i, part := range parts(arounds(size.flags...)) {
				t.Run(fmt.Sprintf("%d ordinals, part %d", size.ordinals, i), func(t *testing.T) {
					t.Parallel()
					nth := 0
					choices(every(size.keep), size.ordinals, func(chosen []slot) {
						for _, a := range part {
							if nth++; !thorough && nth%size.every != 0 {
								continue
							}
							s := smallWorld(chosen, a)
							if faults := all.follow(s); len(faults) > 0 {
								text, _ := yaml.Marshal(distinct(s))
								t.Fatalf("%+v %s\n%s", a, strings.Join(faults, "\n"), text)
							}
						}
					})
				})
			}
		}
	})
	t.Logf("%d roads with %d steps; %d states that cannot be made up", all.closed.Load(), all.steps.Load(), all.open.Load())
	if all.closed.Load() < 100 || all.steps.Load() < 100 {
		t.Error("too few forecasts or steps were followed")
	}
}

// roads counts the forecasts that were followed.
type roads struct{ closed, steps, open atomic.Int64 }

// follow returns the faults of the forecast from a state. It returns nothing for an impossible state.
func (all *roads) follow(s decide.State) []string {
	s = distinct(s)
	s.LockHolder = ""
	w := simulate.From(s, 0)
	s = w.Observe()
	// An initial member would form a cluster with an ID that follows from the token, but a small world has a different
	// ID.
	founding := func(m decide.RecordedMember) bool { return m.Mode == decide.Founding }
	if !s.Membership.Known || slices.ContainsFunc(s.Record.Members, founding) || !reflect.DeepEqual(simulate.From(s, 0).Observe(), s) {
		return nil
	}
	ahead := forecast.Of(s)
	if ahead.Open { // the next step is certain, and nothing else is predicted
		all.open.Add(1)
		if len(ahead.Steps) > 1 {
			return []string{"the forecast for a state that cannot be simulated has more than one step:\n" + ahead.Text("")}
		}
		return nil
	}
	all.closed.Add(1)
	all.steps.Add(int64(len(ahead.Steps)))
	foretold := wordsOf(ahead)
	var taken []string
	for pass := range 1000 {
		seen := w.Observe()
		d := decide.Decide(seen)
		if faults := decidetest.Faults(seen); pass > 0 && len(faults) > 0 {
			return append(faults, fmt.Sprintf("after %d passes, by %s", pass, d))
		}
		done, _ := w.Pass(simulate.NoCrash)
		if done.Verdict == decide.Act {
			if rest := forecast.Of(seen); !rest.Open && !slices.Equal(plainly(slices.Concat(taken, wordsOf(rest))), plainly(foretold)) {
				return []string{fmt.Sprintf("after %d steps of\n%s\nit foretells\n%s\n%s", len(taken), strings.Join(foretold, "\n"), strings.Join(wordsOf(rest), "\n"), rest.End)}
			}
			taken = append(taken, seen.DescribeAction(done.Action))
		}
		if len(taken) >= len(ahead.Steps) && done.Verdict == ahead.End.Verdict && done.Rule == ahead.End.Rule {
			break
		}
		w.Tick()
	}
	if !slices.Equal(taken, foretold) {
		return []string{fmt.Sprintf("foretold\n%s\n%s\ntaken\n%s", strings.Join(foretold, "\n"), ahead.End, strings.Join(taken, "\n"))}
	}
	return w.Violations()
}

// distinct gives each volume and each pod of a small world its own UID.
func distinct(s decide.State) decide.State {
	s = decidetest.Clone(s)
	own := func(uid *string, ordinal int) {
		if *uid != "" {
			*uid += fmt.Sprint(ordinal)
		}
	}
	for i := range s.Replicas {
		own(&s.Replicas[i].VolumeUID, s.Replicas[i].Ordinal)
		own(&s.Replicas[i].PodUID, s.Replicas[i].Ordinal)
	}
	for i := range s.Record.Members {
		own(&s.Record.Members[i].VolumeUID, s.Record.Members[i].Ordinal)
	}
	for i := range s.Record.Removed {
		own(&s.Record.Removed[i].VolumeUID, s.Record.Removed[i].Ordinal)
	}
	return s
}

// wordsOf returns the steps of a forecast.
func wordsOf(r forecast.Forecast) []string {
	var list []string
	for _, step := range r.Steps {
		list = append(list, step.What)
	}
	return list
}

// plainly removes details that a plan cannot know: how often the state of pods and volumes is recorded, which member
// leads at that time, and how often Kubernetes recreates a volume before the member in its slot is gone.
func plainly(steps []string) []string {
	var list []string
	for _, step := range steps {
		kind, _, _ := strings.Cut(step, " ")
		if !slices.Contains([]string{"ApplyObjects", "Seal", "MoveLeader"}, kind) && !slices.Contains(list, step) {
			list = append(list, step)
		}
	}
	return list
}

// worksOnVolume reports whether a small world has a Job that works on a member's volume although the member's pod may
// exist, which is impossible.
func worksOnVolume(flag string) bool {
	return strings.HasPrefix(flag, "recovery") || strings.HasPrefix(flag, "restore") || strings.HasPrefix(flag, "to be restored")
}
