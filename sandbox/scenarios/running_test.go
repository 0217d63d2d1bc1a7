package scenarios

import "testing"

// step is a test step on a running cluster.
type step struct {
	name string
	test func(*testing.T, *world)
}

// TestRunningCluster runs the steps that observe a running cluster.
func TestRunningCluster(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"EtcdClusterAvailability", testAvailability},
		step{"EtcdClusterStatus", testStatus},
		step{"ScaleSubresource", testScaleSubresource},
		step{"PrinterColumns", testPrinterColumns},
		step{"StatusCommand", testStatusCommand},
		step{"RestrictedNamespace", testRestrictedNamespace},
		step{"QuietPass", testQuietPass},
		step{"StatusDeleted", testStatusDeleted},
		step{"APIServerFaults", testFaultsOfQuietPass},
	)
}

// TestDisturbedCluster runs the steps that change objects of a running cluster or remove objects on which quorate
// relies.
func TestDisturbedCluster(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"DriftRepaired", testDriftRepaired},
		step{"LostRecord", testLostRecord},
		step{"CALost", testCALost},
		step{"CAChanged", testCAChanged},
		step{"WornCertificates", testWornCertificates},
		step{"CarriedOver", testCarriedOver},
		step{"CAExpired", testCAExpired},
		step{"GitUnreachable", testGitUnreachable},
		step{"RemovalHeld", testRemovalHeld},
		step{"Orphan", testOrphan},
		step{"Rename", testRename},
		step{"Suspend", testSuspend},
	)
}

// TestUnansweringCluster runs the steps that prevent etcd from responding.
func TestUnansweringCluster(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"EtcdUnreachable", testEtcdUnreachable},
		step{"OneMemberHangs", testOneMemberHangs},
		step{"AllMembersHang", testAllMembersHang},
		step{"UnreachableAndForgotten", testUnreachableAndForgotten},
	)
}

// TestLosses runs the steps that delete pods, volumes and the custom resource.
func TestLosses(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"PodDisruptionBudget", testPodDisruptionBudget},
		step{"TestPodRecovery", testPodRecovery},
		step{"TestDataPersistence", testDataPersistence},
		step{"Persistence", testPersistence},
		step{"TestSeedDataDirLossDoesNotRebootstrap", testSeedDataDirLoss},
		step{"AdmissionRewritesTemplate", testAdmissionRewritesTemplate},
	)
}

// walk runs all steps on a cluster of three members with TLS. Each step leaves the cluster converged for the next step.
// If a step fails, the next step gets a new cluster.
func walk(t *testing.T, steps ...step) {
	w := runningCluster(t)
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, w.as(t)) }) {
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
