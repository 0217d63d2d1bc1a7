package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

const (
	stepsOfWorld  = 125 // steps of a long path in one world
	stepsToSettle = 25  // steps between two settle lines
	// passesToSettle is the number of passes within which the path of every healed world must end.
	passesToSettle = 300
	// passesToLast is the number of passes after which a Block counts as permanent. It exceeds the tests' replaceAfter.
	passesToLast = 40
)

// TestLongPaths takes random paths of spec changes, faults, dying passes and failing writes. It checks that the
// invariants hold and that no violations occur at any step. At regular intervals, all faults that can be healed are
// healed, and the cluster must end up matching the spec. QUORATE_SOAK_STEPS sets the number of steps, and
// QUORATE_SOAK_SEED sets the seed.
func TestLongPaths(t *testing.T) { takeLongPaths(t, 3_000, false) }

// TestLongPathsOfAdoptions takes such paths in worlds where the replicas join a running cluster.
func TestLongPathsOfAdoptions(t *testing.T) { takeLongPaths(t, 2_000, true) }

func takeLongPaths(t *testing.T, steps int, adopts bool) {
	t.Helper()
	if testing.Short() {
		steps /= 10
	}
	steps = fromEnvironment(t, "QUORATE_SOAK_STEPS", steps)
	seed := fromEnvironment(t, "QUORATE_SOAK_SEED", 1)
	kinds := map[string]bool{}
	for world := 0; world*stepsOfWorld < steps; world++ {
		script, fault := wander(uint64(seed), uint64(world), adopts)
		kind := kindOf(fault)
		if fault == "" || kinds[kind] {
			continue
		}
		kinds[kind] = true
		t.Errorf("world %d of seed %d: %s\nto replay it, put this into a file in testdata/converge:\n\n%s", world, seed, fault, strings.Join(shortened(script, fault), "\n"))
	}
}

func fromEnvironment(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return n
}

// wander takes a long path in one world. It returns the script of the path, and the fault that the last line caused, or
// "" if there was none.
func wander(seed, world uint64, adopts bool) (script []string, fault string) {
	dice := rand.New(rand.NewPCG(seed, world))
	j := &journey{adopts: adopts}
	begin := fmt.Sprintf("cluster a replicas=%d version=%s seed=%d phase=nothing together=%t", 1+dice.IntN(5),
		pick(dice, "3.5.35", "3.6.16", "3.7.3"), world, world%2 == 0)
	if fault = j.take(begin); fault != "" {
		return []string{begin}, fault
	}
	script = append(script, begin)
	if adopts {
		line := fmt.Sprintf("fault %s=%d", pick(dice, "adopt", "adopt-namesakes"), 1+dice.IntN(5))
		script = append(script, line)
		if fault = j.take(line); fault != "" {
			return script, fault
		}
	}
	for step := 1; step <= stepsOfWorld; step++ {
		line := j.next(dice)
		if step%stepsToSettle == 0 {
			line = "settle"
		}
		script = append(script, line)
		if fault = j.take(line); fault != "" || j.over {
			return script, fault
		}
	}
	return script, ""
}

// journey is a path taken line by line.
type journey struct {
	path path
	// over is set if the path has ended, for example because most of the data is lost.
	over bool
	// adopts is true if the replicas join a running cluster.
	adopts bool
}

// take executes one line and returns the resulting fault, or an empty string.
func (j *journey) take(line string) string {
	if line == "settle" {
		return j.settle()
	}
	out, err := decidetest.Teller(j.path.tell).Line(line)
	if err != nil {
		return err.Error()
	}
	for text := range strings.Lines(out) {
		if fault, found := strings.CutPrefix(text, "!! "); found {
			return strings.TrimSpace(fault)
		}
	}
	return first(j.path.Violations())
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// next returns a random line.
func (j *journey) next(dice *rand.Rand) string {
	if j.adopts && dice.IntN(5) == 0 {
		return adventure(dice)
	}
	switch n := dice.IntN(100); {
	case n < 8:
		return fmt.Sprintf("pass 1 crash=%d", dice.IntN(4))
	case n < 16:
		return fmt.Sprintf("pass 1 fail=%d", dice.IntN(4))
	case n < 55:
		return fmt.Sprintf("pass %d", 1+dice.IntN(4))
	case n < 65:
		return fmt.Sprintf("tick %d", 1+dice.IntN(4))
	case n < 80:
		return "set " + j.change(dice)
	}
	for {
		cmd := happening(dice)
		fault := strings.TrimPrefix(strings.TrimPrefix(cmd, "fault "), "person ")
		after := journey{path: path{World: j.path.Clone()}}
		if !j.unknowable(fault) && after.take(cmd) == "" && (after.path.Whole() || dice.IntN(20) == 0) {
			return cmd
		}
	}
}

// unknowable reports whether a fault would make it impossible to know which version ran, or whether any version ran.
// Only volumes outlive the custom resource, and they may not record the version. It is also impossible to know whether
// a member that hangs before its first start will ever start.
func (j *journey) unknowable(fault string) bool {
	if name, hangs := strings.CutPrefix(fault, "hang="); hangs {
		members := j.path.Observe().Membership.Members
		starts := func(m decide.Member) bool { return m.Started && m.Name == name }
		neverStarted := func(m decide.Member) bool { return !m.Started }
		return !j.path.formed() || !slices.ContainsFunc(members, starts) || slices.ContainsFunc(members, neverStarted)
	}
	if !slices.Contains([]string{"delete=(EtcdCluster a)", "delete-orphaning=(EtcdCluster a)", "delete-status"}, fault) {
		return strings.HasPrefix(fault, "delete") && !j.path.formed()
	}
	s := j.path.Observe()
	settled := s.Objects.RunsVersion == s.Declared.Version && strings.HasPrefix(s.Declared.Version, j.path.CommonVersion()+".")
	return !j.path.formed() || !settled
}

func (r *path) formed() bool { return r.CommonVersion() != "" }

func pick(dice *rand.Rand, list ...string) string { return list[dice.IntN(len(list))] }

// change returns a random change to the spec. It does not change the version while the running version is unknown, for
// example while the initial members start.
func (j *journey) change(dice *rand.Rand) string {
	known := j.path.Observe().ReportedVersion != ""
	switch n := dice.IntN(6); {
	case n == 2 && known:
		return "spec version=" + pick(dice, "3.5.35", "3.6.16", "3.7.3", "3.6.99")
	case n == 3:
		return "spec hash=" + pick(dice, "h1", "h2", "h3", "crashing")
	case n == 4:
		return "spec lifecycle=" + pick(dice, "Running", "Running", "Stopped")
	case n < 4:
		return fmt.Sprintf("spec replicas=%d", 1+dice.IntN(5))
	}
	return pick(dice, "spec suspended=true", "spec suspended=false", "spec replaceAfter=2m", "spec replaceAfter=0s",
		"spec corruption-check=1h", "spec corruption-check=1h", "spec corruption-check=0s", "spec quota=2048 on-no-space=Recover", "spec backups=true before-upgrade=true before-deletion=true", "spec backups=true before-upgrade=true", "spec before-upgrade=false",
		"lock holder=(a pass)", "lock holder=none")
}

// adventure returns a random event of an adoption.
func adventure(dice *rand.Rand) string {
	switch n := dice.IntN(8); n {
	case 0:
		return "set spec abandon=" + pick(dice, "true", "false", "false")
	case 1, 2:
		return fmt.Sprintf("fault release=%d", dice.IntN(5))
	default:
		return fmt.Sprintf("fault %s=%d", pick(dice, "guest-down", "guest-up", "guest-up", "remove-guest", "rejoin-guest"), dice.IntN(5))
	}
}

// happening returns a random fault, manual action, or pass with an incomplete view.
func happening(dice *rand.Rand) string {
	switch n := dice.IntN(10); {
	case n < 2:
		return "person " + personal(dice)
	case n == 2:
		return "pass 1 " + pick(dice, "missing-claim=a-", "missing-pod=a-", "old-kubernetes=", "old-etcd=") + fmt.Sprint(dice.IntN(5))
	}
	return "fault " + misfortune(dice)
}

// personal returns a random manual action.
func personal(dice *rand.Rand) string {
	n := dice.IntN(5)
	switch dice.IntN(3) {
	case 0:
		return pick(dice, fmt.Sprintf("restore=%d", 1+n), "delete-claims", "delete-orphaning=(EtcdCluster a)", "delete-orphaning=(StatefulSet a)",
			fmt.Sprintf("restore-object=(%d %s)", 1+n, pick(dice, "EtcdCluster a", "ConfigMap a-members", "StatefulSet a")))
	case 1:
		return fmt.Sprintf("%s%d", pick(dice, "promote=a-", "scale=", "force-new-cluster=a-", "register-node=a-"), n)
	}
	return fmt.Sprintf("%s=a-%d", pick(dice, "unlist-claim", "relist-claim", "disown-claim", "own-claim", "unlist-pod", "relist-pod"), n)
}

// misfortune returns a random fault.
func misfortune(dice *rand.Rand) string {
	n := dice.IntN(5)
	switch dice.IntN(4) {
	case 0:
		return fmt.Sprintf("%s=a-%d", pick(dice, "kill-pod", "node-down", "node-up", "mute", "unmute", "slow", "fast", "apart", "together", "unready", "ready-again"), n)
	case 1:
		return fmt.Sprintf("%s=a-%d", pick(dice, "lose-volume", "delete-claim", "replace-claim", "strand", "corrupt", "hang", "nospace", "corrupt-alarm", "differ"), n)
	case 2:
		return pick(dice, fmt.Sprintf("add-member=a-%d", n), fmt.Sprintf("add-learner=a-%d", n), fmt.Sprintf("remove-member=a-%d", n),
			"add-stranger", "cut-network", "mend-network", "heal")
	}
	return pick(dice, "delete=(EtcdCluster a)", "delete=(ConfigMap a-members)", "delete=(StatefulSet a)", "delete=(Service a)",
		"delete=(Secret a-server-tls)", "change=(Service a-client)", "change=(StatefulSet a)", "occupy=(PodDisruptionBudget a)", "delete-status",
		"refuse-backups", "forget-backups", "schedule-backup",
		"put-ca", "put-back-ca", "check-data", "nameless-alarm", "fill-database", "compact")
}

// numbers matches the parts that differ between two faults of the same kind.
var numbers = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// kindOf returns the kind of a fault: its beginning, without numbers.
func kindOf(fault string) string {
	fault = numbers.ReplaceAllString(fault, "")
	return fault[:min(len(fault), 60)]
}

// shortened returns the script without the lines that are not needed to reproduce the fault.
func shortened(script []string, fault string) []string {
	kind := kindOf(fault)
	for size := len(script) / 2; size > 0; size /= 2 {
		for from := 1; from < len(script); {
			without := slices.Delete(slices.Clone(script), from, min(from+size, len(script)))
			if shorter, same := replay(without, kind); same {
				script = shorter
				continue
			}
			from += size
		}
	}
	return script
}

// replay takes a path again and reports whether its first fault is of the given kind. It returns the script up to that
// fault.
func replay(script []string, kind string) ([]string, bool) {
	j := &journey{}
	for i, line := range script {
		if fault := j.take(line); fault != "" {
			return script[:i+1], kindOf(fault) == kind
		}
		if j.over {
			break
		}
	}
	return nil, false
}
