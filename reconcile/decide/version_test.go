package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/internal/etcdversion"
)

// runs sets the members' versions, in order.
func runs(versions ...string) func(*State) {
	return func(s *State) {
		for i, v := range versions {
			s.Membership.Members[i].Version = v
		}
	}
}

// stores sets the members' storage versions, in order, and the target of a downgrade.
func stores(downgrade string, versions ...string) func(*State) {
	return func(s *State) {
		s.Membership.Downgrade = downgrade
		for i, v := range versions {
			s.Membership.Members[i].StorageVersion = v
		}
	}
}

func both(changes ...func(*State)) func(*State) {
	return func(s *State) {
		for _, change := range changes {
			change(s)
		}
	}
}

func declares(version string) func(*State) {
	return func(s *State) { s.Declared.Version = version }
}

func logs(version string) func(*State) {
	return func(s *State) { s.Record.LogVersion = version }
}

func silence(ordinals ...int) func(*State) {
	return func(s *State) { s.down(PodFailing, time.Second, ordinals...) }
}

// createdWith sets the version with which a pod was created.
func createdWith(ordinal int, version string) func(*State) {
	return func(s *State) { s.Replicas[ordinal].PodVersion = version }
}

func versions(texts ...string) (list []etcdversion.Version) {
	for _, text := range texts {
		list = append(list, etcdversion.Must(text))
	}
	return list
}

// TestRunning checks that reported versions count first, then the status, then the versions of pods.
func TestRunning(t *testing.T) {
	unheard := both(silence(0, 1, 2), createdWith(1, "3.5.35"))
	for what, c := range map[string]struct {
		change func(*State)
		want   []etcdversion.Version
	}{
		"all, the oldest first":        {runs("3.7.3", "3.6.16", "3.6.17"), versions("3.6.16", "3.6.17", "3.7.3")},
		"one member is not responding": {both(runs("3.7.3", "3.6.16", "3.6.16"), silence(0)), versions("3.6.16", "3.6.16")},
		"members and a status":         {func(s *State) { s.ReportedVersion = "3.4.0" }, versions("3.6.16", "3.6.16", "3.6.16")},
		"only the status":              {both(unheard, func(s *State) { s.ReportedVersion = "3.7.3" }), versions("3.7.3")},
		"before a release":             {runs("3.6.0", "3.6.0-rc.1", "3.5.26"), versions("3.5.26", "3.6.0-rc.1", "3.6.0")},
		// A vendor's build counts as the release on which it is based. Members run that release, so an older status is
		// not used.
		"vendor builds": {both(runs("3.6.16+acme.1", "3.6.16-k3s1", "3.6.16-k3s1+x"), func(s *State) { s.ReportedVersion = "3.5.35" }),
			versions("3.6.16", "3.6.16", "3.6.16")},
		"unreadable versions": {both(runs("main", "main", "3.6.17"), func(s *State) { s.ReportedVersion = "3.5.35" }),
			versions("3.6.16", "3.6.16", "3.6.17")},
		"an unknown member's unreadable version":     {both(stranger(0), runs("main", "3.6.16", "3.6.16")), versions("3.6.16", "3.6.16")},
		"only unreadable versions, and a status":     {unread, nil},
		"nothing is reported, and a status":          {both(unread, runs("", "", "")), versions("3.5.35")},
		"unresponsive members' versions are ignored": {both(unread, silence(0, 1, 2)), versions("3.5.35")},
		"only the pods": {unheard, versions("3.5.35", "3.6.16", "3.6.16")},
		"pods of a cluster not formed yet": {func(s *State) {
			*s = State{Record: FoundingRecord("t", 1), Replicas: []Replica{{Pod: PodPending, PodVersion: "3.6.16"}}}
		}, nil},
	} {
		if s := after(3, c.change); !slices.Equal(s.running(), c.want) {
			t.Errorf("%s: %v", what, s.running())
		}
	}
}

// unread sets an old status for a cluster with an unknown version.
func unread(s *State) {
	runs("main", "main", "main")(s)
	s.ReportedVersion = "3.5.35"
	for i := range s.Replicas {
		s.Replicas[i].PodVersion = ""
	}
}

// TestJudgeVersion checks which versions may be rolled out from the running versions.
func TestJudgeVersion(t *testing.T) {
	const skips, tooOld, prepared = "skipped", "Declare that release first", "prepared"
	joins := func(s *State) { s.Record.Members[2].Mode = Joining }
	joinedTogether := func(s *State) { s.Record.JoinedTogether = true }
	for what, c := range map[string]struct {
		change func(*State)
		want   string // a part of the refusal, "prepared", or "" for neither
	}{
		"the same version":                                           {nil, prepared},
		"a patch":                                                    {declares("3.6.99"), prepared},
		"no version has run":                                         {func(s *State) { *s = State{Declared: Declared{Version: "3.9.0"}} }, prepared},
		"an invalid version":                                         {declares("3.6"), "is not valid"},
		"one minor up":                                               {declares("3.7.3"), prepared},
		"one minor up, log version unknown":                          {both(declares("3.7.3"), logs("")), ""},
		"one minor up, a downgrade in progress":                      {both(declares("3.7.3"), stores("3.5", "3.6", "3.6", "3.6")), ""},
		"one minor up, a storage version differs":                    {both(declares("3.7.3"), stores("", "3.6", "3.5", "3.6")), ""},
		"two minors up":                                              {declares("3.8.0"), skips},
		"two minors up for the only member":                          {both(func(s *State) { *s = healthy(1) }, declares("3.8.0")), skips},
		"two minors up for one member":                               {both(declares("3.8.0"), runs("3.6.16", "3.7.3", "3.7.3")), skips},
		"another major version":                                      {declares("4.6.0"), skips},
		"one minor up, one version unreadable":                       {both(declares("3.7.3"), runs("main", "3.6.16", "3.6.16")), "a-0 reports etcd version \"main\""},
		"back, one unreadable, its pod created with 3.7":             {both(declares("3.6.16"), runs("3.6.16", "3.6.16", "main"), func(s *State) { s.Replicas[2].PodVersion = "3.7.3" }), prepared},
		"onward, one unreadable, its pod created with 3.7":           {both(declares("3.7.3"), runs("3.6.16", "3.6.16", "main"), func(s *State) { s.Replicas[2].PodVersion = "3.7.3" }), "Declare a 3.6 release, or run a released etcd version"},
		"two minors up, all versions unreadable":                     {both(declares("3.8.0"), unread), "only minor version 3.6 can"},
		"one minor down, all versions unreadable":                    {both(declares("3.5.35"), unread), "only minor version 3.6 can"},
		"a patch, all versions unreadable":                           {both(declares("3.6.99"), unread), prepared},
		"a patch, all versions unreadable, no StatefulSet version":   {both(declares("3.6.99"), unread, func(s *State) { s.Objects.RunsVersion = "" }), "Run a released etcd version"},
		"a patch, one version unreadable":                            {both(declares("3.6.99"), runs("main", "3.6.16", "3.6.16")), prepared},
		"a patch, one version unreadable, new pods older":            {both(declares("3.6.99"), runs("main", "3.6.16", "3.6.16"), func(s *State) { s.Objects.RunsVersion = "3.5.35" }), prepared},
		"back, one version unreadable, another one newer":            {both(declares("3.6.99"), runs("main", "3.7.3", "3.6.16")), prepared},
		"back, one version unreadable, another two newer":            {both(declares("3.6.99"), runs("main", "3.8.0", "3.6.16")), "only minor version 3.6 can"},
		"a patch, one version unreadable, unresponsive member older": {both(declares("3.6.99"), runs("main", "3.6.16", "3.5.35"), silence(2)), prepared},
		"one minor up, unresponsive member's version unreadable":     {both(declares("3.7.3"), runs("3.6.16", "3.6.16", "main"), silence(2)), ""},
		"from 3.5.25":                              {runs("3.5.25", "3.6.16", "3.6.16"), tooOld},
		"from 3.5.26":                              {runs("3.5.26", "3.6.16", "3.6.16"), prepared},
		"from a build of 3.5.26":                   {runs("3.5.26-k3s1", "3.6.16", "3.6.16"), prepared},
		"from a release candidate of 3.5.26":       {runs("3.5.26-rc.0", "3.6.16", "3.6.16"), tooOld},
		"from 3.6.10":                              {both(declares("3.7.3"), runs("3.6.10", "3.6.10", "3.6.10")), tooOld},
		"from 3.6.11":                              {both(declares("3.7.3"), runs("3.6.11", "3.6.11", "3.6.11")), prepared},
		"from 3.4":                                 {both(declares("3.5.35"), runs("3.4.0", "3.4.0", "3.4.0")), prepared},
		"one minor down":                           {both(declares("3.5.35"), stores("", "3.6", "3.6", "3.6")), ""},
		"one minor down, downgrade not enabled":    {both(declares("3.5.35"), stores("", "3.5", "3.5", "3.5")), ""},
		"one minor down, one storage version lags": {both(declares("3.5.35"), stores("3.5", "3.5", "3.6", "3.5")), ""},
		"one minor down, prepared":                 {both(declares("3.5.35"), stores("3.5", "3.5", "3.5", "3.5")), prepared},
		"one minor down, one is not responding":    {both(declares("3.5.35"), stores("3.5", "3.5", "3.5", "3.6"), silence(2)), ""},
		"one minor down, unresponsive member already moved": {both(declares("3.5.35"), stores("3.5", "3.5", "3.5", "3.6"), silence(2),
			createdWith(2, "3.5.35")), prepared},
		"one minor up, one is not responding":                {both(declares("3.7.3"), silence(2)), ""},
		"a patch, one is not responding":                     {both(declares("3.6.99"), silence(2)), prepared},
		"from 3.5.25, member not responding":                 {both(silence(2), createdWith(2, "3.5.25")), tooOld},
		"from 3.5.26, member not responding":                 {both(silence(2), createdWith(2, "3.5.26")), prepared},
		"two minors up for an unresponsive member":           {both(declares("3.7.3"), runs("3.6.16", "3.7.3", "3.7.3"), silence(2), createdWith(2, "3.5.35")), "Declare a 3.6 release first"},
		"a patch from 3.5.25, member not responding":         {both(declares("3.5.36"), runs("3.5.35", "3.5.35", "3.5.35"), silence(2), createdWith(2, "3.5.25")), prepared},
		"from 3.5.25, joined according to unconfirmed list":  {both(silence(2), createdWith(2, "3.5.25"), unlisted, joins), tooOld},
		"from 3.5.25, joining according to unconfirmed list": {both(silence(2), createdWith(2, "3.5.25"), unlisted, joins, unstartedMember(2)), prepared},
		"from 3.5.25, record and member list lost":           {both(silence(2), createdWith(2, "3.5.25"), func(s *State) { s.Record, s.Membership = Record{}, Membership{} }), tooOld},
		"one minor up, unresponsive member already moved":    {both(declares("3.7.3"), silence(2), createdWith(2, "3.7.3")), prepared},
		"one minor up, unresponsive member moved, no record": {both(declares("3.7.3"), silence(2), createdWith(2, "3.7.3"),
			func(s *State) { s.Record = Record{LogVersion: "3.6"} }), prepared},
		"one minor up, only an unrecorded slot moved": {both(declares("3.7.3"), silence(2),
			func(s *State) {
				s.Replicas = append(s.Replicas, Replica{Ordinal: 3, Pod: PodPending, PodVersion: "3.7.3"})
			}), ""},
		"one minor up, only a lost cluster's claim moved": {both(declares("3.7.3"), silence(2), createdWith(2, ""),
			func(s *State) { s.Replicas[2].LastUse.Version, s.Replicas[2].LostCluster = "3.7.3", 0xc9 }), ""},
		"one minor down, two members joined together":           {both(declares("3.5.35"), joinedTogether), "Declare a 3.6 release or newer"},
		"one minor down to 3.6, two joined together":            {both(runs("3.7.3", "3.7.3", "3.7.3"), stores("3.6", "3.6", "3.6", "3.6"), joinedTogether), prepared},
		"a patch of 3.5, two joined together":                   {both(declares("3.5.36"), runs("3.5.35", "3.5.35", "3.5.35"), joinedTogether), prepared},
		"back from a version that never ran":                    {both(silence(2), createdWith(2, "3.9.0")), prepared},
		"from 3.5.25, member lost its volume":                   {both(silence(2), createdWith(2, "3.5.25"), func(s *State) { s.Replicas[2].VolumeUID = "" }), prepared},
		"from 3.5.25, member never started":                     {both(silence(2), createdWith(2, "3.5.25"), func(s *State) { s.Membership.Members[2].Started = false }), prepared},
		"from 3.5.25, no member responds, newer status":         {both(silence(0, 1, 2), createdWith(2, "3.5.25"), func(s *State) { s.ReportedVersion = "3.6.16"; s.Membership = Membership{} }), tooOld},
		"from 3.5.25, unresponsive, another version unreadable": {both(runs("main", "3.6.16", "3.6.16"), silence(2), createdWith(2, "3.5.25")), tooOld},
		"two minors down":                                       {declares("3.4.0"), "by more than one minor version"},
		"two minors down for one member":                        {both(declares("3.5.35"), runs("3.7.3", "3.6.16", "3.6.16")), "by more than one minor version"},
		"back, while one member still runs 3.7":                 {runs("3.7.3", "3.6.16", "3.6.16"), prepared},
		"one up of two, prepared the day before":                {both(declares("3.7.3"), runs("3.6.16", "3.7.3", "3.7.3"), stores("", "3.6", "3.6", "3.6")), prepared},
	} {
		s := after(3, c.change)
		refusal, ready := s.judgeVersion()
		if refusal != "" && ready {
			t.Errorf("%s: refused (%s), but prepared", what, refusal)
		}
		if ready != (c.want == prepared) || !ready && (c.want == "") != (refusal == "") || !ready && !strings.Contains(refusal, c.want) {
			t.Errorf("%s: refusal %q, prepared %t", what, refusal, ready)
		}
	}
	if s := (State{Declared: Declared{Version: "x"}}); s.stepBegun() {
		t.Error("without a StatefulSet, a version change counts as begun")
	}
}

// TestPodIsRestartedOnlyWithVersionThatItsDataAllows checks when a pod that does not run etcd may be recreated with the
// declared version. Its claim counts even if the pod does not name a version.
func TestPodIsRestartedOnlyWithVersionThatItsDataAllows(t *testing.T) {
	fails := slot1(PodFailing, time.Hour)
	back := both(fails, declares("3.5.35"))
	used := func(version string) func(*State) {
		return both(fails, createdWith(1, ""), func(s *State) { s.Replicas[1].LastUse.Version = version })
	}
	hold(t, State.mayRestart, map[string]slotCase{
		"a patch":                            {both(fails, declares("3.6.99")), true},
		"one minor up":                       {both(fails, declares("3.7.3")), true},
		"two minors up":                      {both(fails, declares("3.8.0")), false},
		"from 3.5.25":                        {both(fails, createdWith(1, "3.5.25")), false},
		"from 3.5.25, not formed yet":        {both(first(PodFailing, time.Hour), createdWith(1, "3.5.25")), true},
		"back":                               {back, false},
		"back, and the downgrade is enabled": {both(back, stores("3.5", "3.6", "3.6", "3.6")), true},
		"back, another downgrade is enabled": {both(back, stores("3.4", "3.6", "3.6", "3.6")), false},
		"back, a member already runs it":     {both(back, runs("3.5.35", "3.6.16", "3.6.16")), true},
		"back, only one responds":            {both(back, silence(0)), false},
		"back, no member responds":           {both(back, silence(0, 1, 2)), true},
		"back, the member list is unknown":   {both(back, unlisted), true},
		"the same version, others are newer": {both(fails, runs("3.7.3", "3.6.16", "3.7.3")), true},
		"from 3.5.25, known by the claim":    {used("3.5.25"), false},
		"back, known by the claim":           {both(used("3.6.16"), declares("3.5.35")), false},
		"from an unknown version":            {used(""), true},
		"to an invalid version":              {both(fails, unlisted, declares("main")), false},
	})
}

// TestLogVersion checks that the recorded log version becomes newer only with proof, and older even without proof.
func TestLogVersion(t *testing.T) {
	taken := stores("3.5", "3.5", "3.5", "3.5")
	for what, c := range map[string]struct {
		recorded string
		change   func(*State)
		want     string
	}{
		"unchanged":                                   {"3.6", nil, "3.6"},
		"not known":                                   {"", nil, ""},
		"written out":                                 {"", taken, "3.6"},
		"written out, one is not responding":          {"", both(taken, silence(2)), ""},
		"written out, downgrade not enabled":          {"", stores("", "3.5", "3.5", "3.5"), ""},
		"written out on 3.5, one runs 3.6":            {"", both(runs("3.5.35", "3.5.35", "3.6.16"), stores("3.4", "3.4", "3.4", "3.4")), ""},
		"written out on 3.5":                          {"", both(runs("3.5.35", "3.5.35", "3.5.35"), stores("3.4", "3.4", "3.4", "3.4")), "3.5"},
		"a newer member already reads the log":        {"", runs("3.6.16", "3.6.16", "3.7.0"), "3.6"},
		"one runs 3.7, one still runs 3.5":            {"", runs("3.5.35", "3.6.16", "3.7.0"), ""},
		"the oldest adds to it":                       {"3.6", runs("3.5.35", "3.6.16", "3.6.16"), "3.5"},
		"the oldest adds to what is clear still":      {"3.7", runs("3.6.16", "3.7.0", "3.7.0"), "3.7"},
		"no member responds":                          {"", both(taken, silence(0, 1, 2), func(s *State) { s.ReportedVersion = "3.6.16" }), ""},
		"no member responds, and the status is older": {"3.6", both(silence(0, 1, 2), func(s *State) { s.ReportedVersion = "3.5.35" }), "3.6"},
		"prepared, and clear before":                  {"3.6", both(runs("3.7.3", "3.7.3", "3.7.3"), stores("3.6", "3.6", "3.6", "3.6")), "3.6"},
		"no member reports its version":               {"3.6", runs("", "", ""), "3.6"},
	} {
		if got := after(3, c.change).logVersion(c.recorded); got != c.want {
			t.Errorf("%s: from %q to %q", what, c.recorded, got)
		}
	}
	alone := after(1, both(runs("3.5.35"), func(s *State) { s.Record.LogVersion = "3.6" }))
	if got := alone.logVersion("3.6"); got != "3.5" {
		t.Errorf("the only member runs 3.5, but the log is from %q", got)
	}
	for _, c := range []struct {
		v     string
		since string
		want  bool
	}{
		{"3.6.99", "", true}, {"3.7.0", "", false}, {"3.7.0", "x", false}, {"3.7.0", "3.5", false},
		{"3.7.0", "3.6", true}, {"3.8.1", "3.7", true}, {"3.8.1", "3.5", false},
	} {
		if got := readsLog(minorOf(c.v), c.since); got != c.want {
			t.Errorf("%s reads a log since %q: %t", c.v, c.since, got)
		}
	}
}

// TestDowngradeFinished checks that a prepared downgrade counts as reverted once no downgrade is in progress and the
// data of every responding member has the version that the member runs.
func TestDowngradeFinished(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"no storage version is reported":        {nil, true},
		"all storage versions match":            {stores("", "3.6", "3.6", "3.6"), true},
		"one storage version lags behind":       {stores("", "3.6", "3.6", "3.5"), false},
		"the lagging member is not responding":  {both(stores("", "3.6", "3.6", "3.5"), silence(2)), true},
		"the lagging member reports no version": {both(stores("", "3.6", "3.6", "3.5"), runs("3.6.16", "3.6.16", "")), true},
		"the downgrade is still in progress":    {stores("3.5", "3.6", "3.6", "3.6"), false},
		"between two versions":                  {both(stores("", "3.6", "3.6", "3.6"), runs("3.6.16", "3.6.16", "3.7.3")), true},
		"between two patches":                   {both(stores("", "3.6", "3.6", "3.5"), runs("3.6.11", "3.6.16", "3.6.16")), false},
		"the only member lags behind":           {func(s *State) { *s = healthy(1); s.Membership.Members[0].StorageVersion = "3.5" }, false},
		"no member responds":                    {silence(0, 1, 2), true},
	} {
		if got := after(3, c.change).downgradeFinished(); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
	if (State{}).sameVersions() {
		t.Error("without pods, the versions count as the same")
	}
}

// TestUpgradeAndDowngradeRulesInIsolation checks the actions of prepareUpgrade, downgrade and cancelDowngrade by
// themselves.
func TestUpgradeAndDowngradeRulesInIsolation(t *testing.T) {
	unclear := both(declares("3.7.3"), logs(""), stores("", "3.6", "3.6", "3.6"))
	back := both(declares("3.5.35"), stores("", "3.6", "3.6", "3.6"))
	for what, c := range map[string]struct {
		rule   func(State) (Decision, bool)
		change func(*State)
		want   Action
	}{
		"an upgrade":                                        {prepareUpgrade, unclear, EnableDowngrade{"3.5"}},
		"an upgrade, member list unknown":                   {prepareUpgrade, both(unclear, func(s *State) { s.Membership.Known = false }), nil},
		"an upgrade, a member is not responding":            {prepareUpgrade, both(unclear, silence(2)), nil},
		"an upgrade that is refused":                        {prepareUpgrade, both(unclear, runs("3.6.10", "3.6.16", "3.6.16")), nil},
		"another patch of 3.7":                              {prepareUpgrade, both(unclear, runs("3.7.2", "3.7.2", "3.7.2")), nil},
		"another patch of 3.6":                              {prepareUpgrade, both(declares("3.6.17"), logs("")), nil},
		"an upgrade that the log allows":                    {prepareUpgrade, both(unclear, logs("3.6"), stores("3.4", "3.6", "3.6", "3.6")), nil},
		"an upgrade half done":                              {prepareUpgrade, both(unclear, runs("3.6.16", "3.7.3", "3.7.3")), nil},
		"another downgrade is in progress":                  {prepareUpgrade, both(unclear, stores("3.4", "3.6", "3.6", "3.6")), nil},
		"an upgrade, all pods are up to date":               {prepareUpgrade, both(unclear, asDeclared), nil},
		"a downgrade":                                       {downgrade, back, EnableDowngrade{"3.5"}},
		"a downgrade, member list unknown":                  {downgrade, both(back, func(s *State) { s.Membership.Known = false }), nil},
		"a downgrade, cluster not formed":                   {downgrade, both(back, func(s *State) { s.Record, s.ReportedClusterID = FoundingRecord("t", 3), 0 }), nil},
		"a downgrade, all pods are up to date":              {downgrade, both(back, asDeclared), nil},
		"a downgrade that is refused":                       {downgrade, both(back, declares("3.4.0")), nil},
		"a downgrade that is prepared":                      {downgrade, both(back, stores("3.5", "3.5", "3.5", "3.5")), nil},
		"a downgrade, and a member is missing":              {downgrade, both(back, without(2)), nil},
		"a downgrade, and one has never started":            {downgrade, both(back, learns(2), unstartedMember(2)), nil},
		"an upgrade, and a member is missing":               {prepareUpgrade, both(unclear, without(2)), nil},
		"a downgrade that is no longer declared":            {cancelDowngrade, stores("3.5", "3.6", "3.6", "3.6"), CancelDowngrade{"3.5"}},
		"no longer declared, member list unknown":           {cancelDowngrade, both(stores("3.5", "3.6", "3.6", "3.6"), unlisted), nil},
		"no longer declared, a member not responding":       {cancelDowngrade, both(stores("3.5", "3.6", "3.6", "3.6"), silence(1)), CancelDowngrade{"3.5"}},
		"the declared downgrade":                            {cancelDowngrade, both(back, stores("3.5", "3.5", "3.5", "3.5")), nil},
		"the declared downgrade, a member not responding":   {cancelDowngrade, both(back, stores("3.5", "3.5", "3.5", "3.5"), silence(1)), nil},
		"the declared downgrade, a member is missing":       {cancelDowngrade, both(back, stores("3.5", "3.5", "3.5", "3.5"), without(1)), CancelDowngrade{"3.5"}},
		"the declared downgrade, a member never started":    {cancelDowngrade, both(back, stores("3.5", "3.5", "3.5", "3.5"), learns(1), unstartedMember(1)), CancelDowngrade{"3.5"}},
		"the declared downgrade, new pods have its version": {cancelDowngrade, both(back, stores("3.5", "3.5", "3.5", "3.5"), without(1), func(s *State) { s.Objects.RunsVersion = "3.5.35" }), nil},
		"the declared downgrade, a member already runs it":  {cancelDowngrade, both(back, stores("3.5", "3.5", "3.5", "3.5"), runs("3.6.16", "3.6.16", "3.5.35"), without(1), func(s *State) { s.Objects.RunsVersion = "3.5.35" }), CancelDowngrade{"3.5"}},
		"the declared downgrade, cluster must stop":         {cancelDowngrade, both(back, stores("3.5", "3.5", "3.5", "3.5"), without(1), func(s *State) { s.Declared.Lifecycle = Stopped }), nil},
		"a downgrade that prepares an upgrade":              {cancelDowngrade, both(unclear, stores("3.5", "3.6", "3.6", "3.6")), nil},
		"a downgrade for an upgrade, member missing":        {cancelDowngrade, both(unclear, stores("3.5", "3.6", "3.6", "3.6"), without(1)), CancelDowngrade{"3.5"}},
		"a downgrade the upgrade does not need":             {cancelDowngrade, both(unclear, stores("3.4", "3.6", "3.6", "3.6")), CancelDowngrade{"3.4"}},
	} {
		d, speaks := c.rule(after(3, c.change))
		if d.Action != c.want || speaks != (c.want != nil) {
			t.Errorf("%s: %s", what, d)
		}
	}
	if d, _ := downgrade(after(3, both(declares("3.7.3"), stores("", "3.6", "3.5", "3.6")))); d.Verdict != Wait || d.Action != nil {
		t.Errorf("the preparation is not reverted yet: %s", d)
	}
	if d, speaks := downgrade(after(3, both(declares("3.7.3"), silence(0, 1, 2), func(s *State) { s.ReportedVersion = "" }))); speaks {
		t.Errorf("no running version is known: %s", d)
	}
}

// asDeclared makes all pods match the declared version.
func asDeclared(s *State) {
	s.Objects.RunsVersion = s.Declared.Version
	for i := range s.Replicas {
		s.Replicas[i].PodVersion = s.Declared.Version
	}
}

// unstartedMember marks a member as never started.
func unstartedMember(n int) func(*State) {
	return func(s *State) { s.Membership.Members[n].Started, s.Membership.Members[n].Answers = false, false }
}
