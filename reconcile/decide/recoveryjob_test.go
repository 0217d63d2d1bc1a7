package decide

import "testing"

func unconfirmed(s *State) { s.Membership.Unconfirmed = true }

func disputed(s *State) { s.Membership.Unconfirmed, s.Membership.Disputed = true, true }

func ofC9(j *RecoveryJob) { j.ClusterID = 0xc9 }

// TestRecoveryJobIsStopped checks when a running Job must be stopped.
func TestRecoveryJobIsStopped(t *testing.T) {
	job := both(lostMajority, recoveryJob())
	other := func(s *State) { s.Membership.ClusterID = 0xc2 }
	judge(t, State.recoversInVain, map[string]slotCase{
		"no quorum":                      {job, false},
		"quorum":                         {both(job, listed(true, 0, 2)), true},
		"an unconfirmed member list":     {both(job, listed(false, 0, 2), unconfirmed), true},
		"members return different lists": {both(job, listed(false, 0, 2), disputed), true},
		"an unconfirmed list without a cluster ID": {both(job, func(s *State) { s.Membership = Membership{Unconfirmed: true} }), true},
		"quorum, and the Job has ended":            {both(lostMajority, recoveryJob(succeeded), listed(true, 0, 2)), false},
		"quorum of the new cluster":                {both(job, listed(true, 0, 2), other), false},
		"quorum, and the Job is being deleted":     {both(lostMajority, recoveryJob(jobGoes), listed(true, 0, 2)), false},
	})
	judge(t, State.recoversUnasked, map[string]slotCase{
		"requested":                            {job, false},
		"not requested":                        {both(job, requestsNothing), true},
		"not requested, and the Job has ended": {both(lostMajority, recoveryJob(succeeded), requestsNothing), false},
		"the request is void":                  {both(job, func(s *State) { s.Record.VoidRecovery = "w1" }), true},
	})
	begins := both(lostMajority, begun)
	otherDigest := requests(func(o *RecoveryOrder) { o.Digest = "d2" })
	judge(t, func(s State) bool { return s.stopsRecovery() != "" }, map[string]slotCase{
		"no Job":              {begins, false},
		"as requested":        {both(begins, recoveryJob()), false},
		"for another request": {both(begins, recoveryJob(), otherDigest), true},
		"for another request that is not allowed":    {both(begins, recoveryJob(), otherDigest, refused), false},
		"for another request, and the Job has ended": {both(begins, recoveryJob(succeeded), otherDigest), false},
		"for another cluster":                        {both(begins, recoveryJob(ofC9)), true},
		"a member is no longer declared lost":        {both(begins, recoveryJob(), givesUp(0b001)), true},
	})
}

// TestOnlyJobOfThisRecoveryFinishesIt checks that a Job's result is accepted only if the Job was started for exactly
// the recorded recovery and the current request.
func TestOnlyJobOfThisRecoveryFinishesIt(t *testing.T) {
	ended := func(changes ...func(*RecoveryJob)) func(*State) {
		return both(lostMajority, begun, recoveryJob(append([]func(*RecoveryJob){succeeded}, changes...)...))
	}
	stops := StopRecovery{"j1"}
	recoverAlone(t, map[string]outcome{
		"the Job of this recovery":            {ended(), Act, FinishRecovery{0xc2, "v1"}},
		"from a backup":                       {both(lostAll, begun, recoveryJob(succeeded)), Act, FinishRecovery{0xc2, "v1"}},
		"the Job is being deleted":            {ended(jobGoes), Wait, nil},
		"for another cluster":                 {ended(ofC9), Act, stops},
		"for another member":                  {ended(func(j *RecoveryJob) { j.Ordinal = 2 }), Act, stops},
		"on another volume":                   {ended(func(j *RecoveryJob) { j.VolumeUID = "w1" }), Act, stops},
		"from a backup that is not requested": {ended(func(j *RecoveryJob) { j.From = "tuesday" }), Act, stops},
		"for another request":                 {ended(func(j *RecoveryJob) { j.Digest = "d0" }), Act, stops},
		"the new cluster ID is missing":       {ended(func(j *RecoveryJob) { j.Into = 0 }), Act, stops},
		"the new cluster ID is unchanged":     {ended(func(j *RecoveryJob) { j.Into = 0xc1 }), Act, stops},
		"the Job has failed":                  {ended(func(j *RecoveryJob) { j.Phase = JobFailed }), Block, nil},
	})
}
