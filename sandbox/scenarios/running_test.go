package scenarios

import "testing"

// TestRunningCluster takes one cluster of three with TLS through everything that can be done to a cluster that runs. Each
// step leaves it converged for the next; the last one breaks it for good. After a step that failed, the next one has a new cluster.
func TestRunningCluster(t *testing.T) {
	t.Parallel()
	w := runningCluster(t)
	for _, step := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"EtcdClusterAvailability", testAvailability},
		{"EtcdClusterStatus", testStatus},
		{"ScaleSubresource", testScaleSubresource},
		{"PrinterColumns", testPrinterColumns},
		{"StatusCommand", testStatusCommand},
		{"RestrictedNamespace", testRestrictedNamespace},
		{"QuietPass", testQuietPass},
		{"APIServerFaults", testFaultsOfQuietPass},
		{"StatusDeleted", testStatusDeleted},
		{"DriftRepaired", testDriftRepaired},
		{"LostRecord", testLostRecord},
		{"AuthorityLost", testAuthorityLost},
		{"GitUnreachable", testGitUnreachable},
		{"GoneFromGit", testGoneFromGit},
		{"Suspend", testSuspend},
		{"EtcdUnreachable", testEtcdUnreachable},
		{"PodDisruptionBudget", testPodDisruptionBudget},
		{"TestPodRecovery", testPodRecovery},
		{"TestDataPersistence", testDataPersistence},
		{"Persistence", testPersistence},
		{"TestSeedDataDirLossDoesNotRebootstrap", testSeedDataDirLoss},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, w.as(t)) }) {
			w = runningCluster(t)
		}
	}
}

func runningCluster(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	w.convergeFrom(inside)
	return w
}
