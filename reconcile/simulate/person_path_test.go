package simulate_test

import (
	"fmt"
	"strconv"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// sights are the ways in which a pass sees less than there is, by their names in paths.
var sights = map[string]func(int) simulate.Sight{
	"missing-claim": simulate.MissingClaim, "missing-pod": simulate.MissingPod,
	"old-kubernetes": simulate.OldKubernetes, "old-etcd": simulate.OldEtcd,
}

// person lets somebody do something with kubectl or etcdctl.
func (r *path) person(key, value string) error {
	byNumber := map[string]func(int){
		"force-new-cluster": r.ForceNewCluster, "promote": r.PromoteMember, "scale": r.Scale, "restore": r.Restore, "register-node": r.RegisterNode,
		"unlist-claim": func(n int) { r.UnlistClaim(n, true) }, "relist-claim": func(n int) { r.UnlistClaim(n, false) },
		"disown-claim": func(n int) { r.DisownClaim(n, true) }, "own-claim": func(n int) { r.DisownClaim(n, false) },
		"unlist-pod": func(n int) { r.UnlistPod(n, true) }, "relist-pod": func(n int) { r.UnlistPod(n, false) },
	}
	if do := byNumber[key]; do != nil {
		n, err := strconv.Atoi(value)
		if err == nil {
			do(n)
		}
		return err
	}
	switch key {
	case "delete-claims":
		for n := range 8 {
			r.DeleteVolume(n)
		}
	case "delete-orphaning":
		r.DeleteOrphaning(value)
	case "disarm":
		r.ClearAlarms(value)
	case "restore-object":
		ticks, name, _ := strings.Cut(value, " ")
		n, err := strconv.Atoi(ticks)
		if err != nil {
			return err
		}
		r.RestoreObject(name, n)
	default:
		return r.fault(key, value) // a fault that may be a person's deed
	}
	return nil
}

func (r *path) decideOnly() string {
	s := r.Observe()
	d := decide.Decide(s)
	r.late.seen, r.late.action = s, d.Action
	return print([]simulate.Step{{Decision: d}})
}

func (r *path) doLate() string {
	if r.late.action == nil {
		return "nothing was decided\n"
	}
	writes := r.DoSeen(r.late.seen, r.late.action, simulate.NoCrash)
	r.late.action = nil
	r.Tick()
	return fmt.Sprintf("%d written\n", len(writes)) + marks(r.Violations())
}
