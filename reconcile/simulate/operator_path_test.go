package simulate_test

import (
	"fmt"
	"strconv"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/simulate"
)

// sight returns the limited view that a directive specifies for a pass.
func (r *path) sight(key, value string) (see simulate.View, err error) {
	var n int
	switch key {
	case "missing-claim", "missing-pod":
		n, err = decidetest.Ordinal(r.Name(), value)
	case "old-kubernetes", "old-etcd":
		n, err = strconv.Atoi(value)
	default:
		return nil, fmt.Errorf("a pass has no %s", key)
	}
	sights := map[string]func(int) simulate.View{
		"missing-claim": simulate.MissingClaim, "missing-pod": simulate.MissingPod,
		"old-kubernetes": simulate.OldKubernetes, "old-etcd": simulate.OldEtcd,
	}
	return sights[key](n), err
}

// person carries out an operator's action with kubectl or etcdctl.
func (r *path) person(key, value string) error {
	byOrdinal := map[string]func(int){
		"mark-claim":        func(n int) { r.MarkClaim(n, 0xc7) },
		"unmark-claim":      func(n int) { r.MarkClaim(n, 0) },
		"force-new-cluster": r.ForceNewCluster, "promote": r.PromoteMember, "register-node": r.RegisterNode,
		"unlist-claim": func(n int) { r.UnlistClaim(n, true) }, "relist-claim": func(n int) { r.UnlistClaim(n, false) },
		"disown-claim": func(n int) { r.DisownClaim(n, true) }, "own-claim": func(n int) { r.DisownClaim(n, false) },
		"unlist-pod": func(n int) { r.UnlistPod(n, true) }, "relist-pod": func(n int) { r.UnlistPod(n, false) },
	}
	if do := byOrdinal[key]; do != nil {
		n, err := decidetest.Ordinal(r.Name(), value)
		if err == nil {
			do(n)
		}
		return err
	}
	byNumber := map[string]func(int){"scale": r.Scale, "restore": r.Restore}
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
		r.ClearAlarms(decide.AlarmKind(value))
	case "restore-object":
		ticks, name, _ := strings.Cut(value, " ")
		n, err := strconv.Atoi(ticks)
		if err != nil {
			return err
		}
		r.RestoreObject(name, n)
	default:
		return r.fault(key, value) // a fault that may also be a manual action
	}
	return nil
}

// act executes the last decided action, regardless of how old the decision is.
func (r *path) act() (string, error) {
	if r.late.action == nil {
		return "", fmt.Errorf("nothing was decided that is to be done")
	}
	writes := r.DoSeen(r.late.seen, r.late.action, simulate.NoCrash)
	r.late.action = nil
	r.Tick()
	return fmt.Sprintf("%d written\n", len(writes)) + marks(r.Violations()), nil
}
