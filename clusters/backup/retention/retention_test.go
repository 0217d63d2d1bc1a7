package retention

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
)

var now = time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)

const present, earlier = "00000000000000aa", "00000000000000bb"

// backup returns a backup of the given age. The letters set its properties: v means verified, s suspect, d damaged, and
// e that it has the earlier cluster ID.
func backup(age time.Duration, letters string) store.Backup {
	b := store.Backup{Cluster: store.Cluster{Namespace: "ns", Name: "a"}, ClusterID: present, Slot: now.Add(-age)}
	for _, letter := range letters {
		switch letter {
		case 'v':
			b.Verified = true
		case 's':
			b.Suspect = true
		case 'd':
			b.Damaged = true
		case 'e':
			b.ClusterID = earlier
		}
	}
	return b
}

const hours, days = time.Hour, 24 * time.Hour

func TestPrune(t *testing.T) {
	keepTwo := Policy{Last: 2, MinAge: days}
	for name, c := range map[string]struct {
		backups []store.Backup
		policy  Policy
		deleted []time.Duration
		why     string
	}{
		"nothing there":     {nil, keepTwo, nil, "no good backup exists"},
		"all damaged":       {[]store.Backup{backup(hours, "d"), backup(9*days, "s")}, keepTwo, nil, "no good backup exists"},
		"newest unverified": {[]store.Backup{backup(hours, ""), backup(2*days, "v"), backup(9*days, "v")}, keepTwo, nil, "the newest backup, 20261122t170000z, has not been read back since it was stored. Verify it first"},
		"of the future":     {[]store.Backup{backup(-hours, "v"), backup(9*days, "v"), backup(10*days, "v")}, keepTwo, nil, "the newest backup, 20261122t190000z, is dated in the future; a clock is wrong"},
		"last":              {[]store.Backup{backup(hours, "v"), backup(2*days, ""), backup(3*days, ""), backup(4*days, "v")}, keepTwo, []time.Duration{4 * days, 3 * days}, ""},
		"young":             {[]store.Backup{backup(hours, "v"), backup(2*hours, ""), backup(3*hours, ""), backup(4*hours, "")}, keepTwo, nil, ""},
		"nothing kept":      {[]store.Backup{backup(2*days, "v"), backup(3*days, "v")}, Policy{}, []time.Duration{3 * days}, ""},
		"damaged do not count": {
			[]store.Backup{backup(hours, "v"), backup(2*days, "d"), backup(3*days, ""), backup(4*days, "")}, keepTwo, []time.Duration{4 * days, 2 * days}, "",
		},
		"since the newest good one there are bad ones only": {
			[]store.Backup{backup(30*days, "v"), backup(29*days, "s"), backup(28*days, "d"), backup(40*days, "s")}, Policy{}, []time.Duration{40 * days}, "",
		},
		"daily": {
			[]store.Backup{backup(hours, "v"), backup(25*hours, ""), backup(26*hours, ""), backup(49*hours, ""), backup(73*hours, "")},
			Policy{Daily: 3}, []time.Duration{73 * hours, 26 * hours}, "",
		},
		"weekly": {
			[]store.Backup{backup(hours, "v"), backup(7*days, ""), backup(8*days, ""), backup(14*days, ""), backup(21*days, "")},
			Policy{Weekly: 3}, []time.Duration{21 * days, 8 * days}, "",
		},
		"before a restore, not yet replaced": {[]store.Backup{backup(hours, "v"), backup(40*days, "ev"), backup(41*days, "e")}, keepTwo, nil, ""},
		"before a restore, replaced": {
			[]store.Backup{backup(hours, "v"), backup(2*hours, "v"), backup(40*days, "ev"), backup(41*days, "ev"), backup(42*days, "ev")}, keepTwo, []time.Duration{42 * days}, "",
		},
		"before a restore, with damaged backups newer than the last good backup": {
			[]store.Backup{backup(hours, "v"), backup(2*hours, "v"), backup(40*days, "es"), backup(41*days, "ed"), backup(42*days, "ev"), backup(43*days, "es")},
			keepTwo, []time.Duration{43 * days}, "",
		},
		"before a restore, bad ones alone": {[]store.Backup{backup(hours, "v"), backup(2*hours, "v"), backup(40*days, "es"), backup(41*days, "es")}, keepTwo, nil, ""},
		"two that live side by side": {
			[]store.Backup{backup(hours, "v"), backup(50*days, "v"), backup(40*days, "ev"), backup(41*days, "ev")}, keepTwo, nil, "",
		},
	} {
		plan := Prune(store.Listing{Backups: c.backups}, c.policy, now)
		var deleted []time.Duration
		for _, b := range plan.Delete {
			deleted = append(deleted, now.Sub(b.Slot))
		}
		if !slices.Equal(deleted, c.deleted) || plan.Why != c.why {
			t.Errorf("%s: deleted %v (%s), want %v (%s)", name, deleted, plan.Why, c.deleted, c.why)
		}
	}
}

// TestPruneInvariants checks the invariants with random backups and policies.
func TestPruneInvariants(t *testing.T) {
	for seed := range uint64(20_000) {
		chance := rand.New(rand.NewPCG(seed, 0))
		policy := Policy{
			Last: chance.IntN(4), Hourly: chance.IntN(3), Daily: chance.IntN(3), Weekly: chance.IntN(3),
			MinAge: time.Duration(chance.IntN(3)) * days,
		}
		var backups []store.Backup
		for range chance.IntN(40) {
			letters := fmt.Sprint([]string{"", "v"}[chance.IntN(2)], []string{"", "", "", "s", "d"}[chance.IntN(5)], []string{"", "", "e"}[chance.IntN(3)])
			backups = append(backups, backup(time.Duration(chance.IntN(60*24)-5)*hours, letters))
		}
		slices.SortFunc(backups, func(a, b store.Backup) int { return a.Slot.Compare(b.Slot) })
		backups = slices.CompactFunc(backups, func(a, b store.Backup) bool { return a.Slot.Equal(b.Slot) })
		plan := Prune(store.Listing{Backups: backups}, policy, now)
		if broken := lawBroken(backups, plan, policy); broken != "" {
			t.Fatalf("seed %d: %s:\n%+v\n%+v\n%+v", seed, broken, policy, backups, plan)
		}
		chance.Shuffle(len(backups), func(i, j int) { backups[i], backups[j] = backups[j], backups[i] })
		if again := Prune(store.Listing{Backups: backups}, policy, now); !slices.Equal(again.Delete, plan.Delete) {
			t.Fatalf("seed %d: it depends on the order", seed)
		}
		if broken := byVerifiedBroken(backups, policy); broken != "" {
			t.Fatalf("seed %d: by the newest verified: %s:\n%+v\n%+v", seed, broken, policy, backups)
		}
		oneID := !slices.ContainsFunc(backups, func(b store.Backup) bool { return b.ClusterID == earlier })
		if kept := without(backups, plan.Delete); oneID && len(plan.Delete) < MaxDeleted {
			if again := Prune(store.Listing{Backups: kept}, policy, now); len(again.Delete) > 0 {
				t.Fatalf("seed %d: kept backups are deleted the next time: %+v", seed, again.Delete)
			}
		}
	}
}

// lawBroken returns the invariant that a plan violates, or "". It considers only the backups that remain.
func lawBroken(all []store.Backup, plan Plan, p Policy) string {
	left := without(all, slices.Concat(plan.Delete, plan.Behind)) // backups in Behind may be deleted too
	newest := func(of []store.Backup, is func(store.Backup) bool) (found store.Backup) {
		for _, b := range of {
			if is(b) && b.Slot.After(found.Slot) {
				found = b
			}
		}
		return found
	}
	good := func(b store.Backup) bool { return !b.Damaged && !b.Suspect }
	proven := func(b store.Backup) bool { return good(b) && b.Verified }
	top := newest(all, good)
	switch {
	case len(plan.Delete) > 0 && (plan.Why != "" || !top.Verified):
		return "it deletes though the newest is not verified"
	case len(plan.Delete) > MaxDeleted:
		return "it deletes too many"
	case newest(left, good) != top:
		return "the newest is gone"
	}
	for _, id := range []string{present, earlier} {
		of := func(is func(store.Backup) bool) func(store.Backup) bool {
			return func(b store.Backup) bool { return b.ClusterID == id && is(b) }
		}
		if newest(left, of(good)) != newest(all, of(good)) || newest(left, of(proven)) != newest(all, of(proven)) {
			return "the newest of " + id + " is gone"
		}
	}
	provenNow := 0
	for _, b := range all {
		if proven(b) && b.ClusterID == top.ClusterID {
			provenNow++
		}
	}
	for _, b := range plan.Delete {
		switch {
		case now.Sub(b.Slot) < p.MinAge:
			return "one that is young is gone"
		case !good(b) && b.Slot.After(newest(all, func(o store.Backup) bool { return good(o) && o.ClusterID == b.ClusterID }).Slot):
			return "one is gone than which there is nothing better"
		case b.ClusterID != top.ClusterID && provenNow < max(1, p.Last):
			return "one of an earlier cluster ID is gone without what replaces it"
		}
	}
	return ""
}

// byVerifiedBroken returns the invariant that a plan with ByVerified violates, or "". Such a plan must not delete
// anything that would be kept if the newer unverified backups did not exist.
func byVerifiedBroken(all []store.Backup, p Policy) string {
	p.ByVerified = true
	plan := Prune(store.Listing{Backups: all}, p, now)
	left := without(all, plan.Waiting)
	p.ByVerified = false
	for _, b := range plan.Waiting {
		if b.Verified || !b.Good() || b.Slot.Before(plan.RestsOn.Slot) {
			return "one waits that does not"
		}
	}
	alone := Prune(store.Listing{Backups: left}, p, now)
	if plan.Why != "" {
		if len(plan.Delete)+len(plan.Behind)+len(plan.Orphans) > 0 {
			return "it deletes though " + plan.Why
		}
		return ""
	}
	if plan.Why != alone.Why || plan.RestsOn != alone.RestsOn {
		return "it goes by another: " + plan.Why + ", " + alone.Why
	}
	for _, b := range slices.Concat(plan.Delete, plan.Behind) {
		if !slices.Contains(alone.Delete, b) && !slices.Contains(alone.Behind, b) {
			return "it gives up " + b.ID()
		}
	}
	return ""
}

// TestUnverifiedBackupsDoNotBlockPrune checks that newer unverified backups are not deleted, and that they do not
// prevent the deletion of other backups.
func TestUnverifiedBackupsDoNotBlockPrune(t *testing.T) {
	for name, c := range map[string]struct {
		backups         []store.Backup
		deleted, waited []time.Duration
		why             string
	}{
		"another Job's":      {[]store.Backup{backup(hours, ""), backup(2*hours, "v"), backup(9*days, "v"), backup(10*days, "")}, []time.Duration{10 * days}, []time.Duration{hours}, ""},
		"nobody's":           {[]store.Backup{backup(hours, ""), backup(2*hours, ""), backup(10*days, "")}, nil, nil, "the newest backup, 20261122t170000z, has not been read back since it was stored. Verify it first"},
		"of the future":      {[]store.Backup{backup(-365*days, ""), backup(2*hours, "v"), backup(9*days, ""), backup(10*days, "")}, []time.Duration{10 * days}, []time.Duration{-365 * days}, ""},
		"verified of it":     {[]store.Backup{backup(-hours, "v"), backup(2*hours, "v"), backup(9*days, ""), backup(10*days, "")}, nil, nil, "the newest backup, 20261122t190000z, is dated in the future; a clock is wrong"},
		"of another cluster": {[]store.Backup{backup(hours, "e"), backup(2*hours, "v"), backup(3*hours, "v"), backup(40*days, ""), backup(50*days, "e")}, []time.Duration{40 * days}, []time.Duration{hours}, ""},
		"at the same time":   {[]store.Backup{backup(2*hours, "e"), backup(2*hours, "v"), backup(9*days, "v"), backup(10*days, "")}, []time.Duration{10 * days}, []time.Duration{2 * hours}, ""},
	} {
		plan := Prune(store.Listing{Backups: c.backups}, Policy{Last: 2, MinAge: days, ByVerified: true}, now)
		ages := func(of []store.Backup) (ages []time.Duration) {
			for _, b := range of {
				ages = append(ages, now.Sub(b.Slot))
			}
			return ages
		}
		if deleted, waited := ages(plan.Delete), ages(plan.Waiting); !slices.Equal(deleted, c.deleted) || !slices.Equal(waited, c.waited) || plan.Why != c.why {
			t.Errorf("%s: deleted %v, waited for %v (%s)", name, deleted, waited, plan.Why)
		}
	}
}

func without(all, deleted []store.Backup) []store.Backup {
	return slices.DeleteFunc(slices.Clone(all), func(b store.Backup) bool { return slices.Contains(deleted, b) })
}

// TestOnlyOldOrphansAreDeleted checks that data is deleted as an orphan only if it is old and its slot has no manifest.
func TestOnlyOldOrphansAreDeleted(t *testing.T) {
	l := store.Listing{
		Backups: []store.Backup{backup(hours, "v"), backup(10*days, "v")},
		Data: map[string]time.Time{
			"on its way": now.Add(-hours), "young": now.Add(-7 * days), "of a backup": now.Add(-10 * days), "old": now.Add(-9 * days), "older": now.Add(-12 * days),
		},
	}
	if plan := Prune(l, Policy{Last: 7, MinAge: days}, now); !slices.Equal(plan.Orphans, []string{"old", "older"}) {
		t.Errorf("%+v", plan)
	}
	l.Backups[0].Verified = false
	if plan := Prune(l, Policy{Last: 7, MinAge: days}, now); len(plan.Orphans) > 0 {
		t.Errorf("%+v", plan)
	}
}

// TestPruneIsLinear checks that the running time of Prune is linear in the number of backups.
func TestPruneIsLinear(t *testing.T) {
	policy := Policy{Last: 7, Daily: 30, MinAge: days}
	takes := func(count int) time.Duration {
		l := store.Listing{Data: map[string]time.Time{}}
		for i := range count {
			b := backup(time.Duration(i+1)*hours, "v")
			l.Backups = append(l.Backups, b)
			l.Data[b.ID()] = b.Slot
		}
		best := time.Hour
		for range 3 { // the machine may be busy
			start := time.Now()
			plan := Prune(l, policy, now)
			best = min(best, time.Since(start))
			if len(plan.Delete) != MaxDeleted || len(plan.Orphans) > 0 {
				t.Fatalf("%d backups: %+v", count, plan)
			}
		}
		return best
	}
	const year, times, attempts = 24 * 365, 8, 10
	for n := 1; ; n++ { // other programs may use the processor during one of the two measurements
		part, all := takes(year/times), takes(year)
		if all <= 4*times*part {
			return
		}
		if n == attempts {
			t.Fatalf("%d times the backups take %v instead of %v", times, all, part)
		}
	}
}
