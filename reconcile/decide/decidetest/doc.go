// Package decidetest checks decisions against all requirements, and defines the language in which tests describe
// clusters. Use it only in tests.
//
// # The language
//
// A story (testdata/decide) describes a state, and a path (testdata/converge) a simulated world. Both are [datadriven]
// files, and use the same words with the same meaning. Each directive is on its own line; its output follows "----", up
// to an empty line. After a change, run the tests with -rewrite and read the diff. A replica is written by name (a-1),
// a value with spaces in parentheses, and "none" stands for an empty value.
//
// # Common words
//
// This directive creates a cluster. The cluster has formed and is healthy, unless phase specifies otherwise: nothing
// exists yet, or the objects exist but the pods have not been created. All words of spec can be used here. Members join
// one at a time, unless the cluster was bootstrapped so that two may join together.
//
//	cluster a replicas=3 version=3.6.16 phase=nothing|founded|formed
//	cluster a together=true
//
// These directives change the declaration, or give the lease to a different holder. Words of spec that are not fields
// of the custom resource come from the state printed by "quorate plan -o state". The word hash is short for specHash,
// confirmed for confirmedMembers, and problem for an entry in problems.
//
//	set spec replicas=5 version=3.7.3 hash=h2 storage=2Gi quota=4096 lifecycle=Running|Stopped|Deleted retention=Retain|Delete
//	set spec suspended=true replaceAfter=10m orphaned=(main@sha1:1 declares it no longer) renamedFrom=(b/old)
//	set spec backups=true verifies-backups=true backup-to=(s3://new) before-upgrade=true before-deletion=true
//	set spec defragment-percent=45 defragment-free=200 window=open|closed|none defragment=(now)|none
//	set spec corruption-check=24h on-no-space=Recover|Report
//	set spec restore=(tuesday of b/a)|none
//	set spec recovery=(c1 1)|none backup=(tuesday) lost=(0 2) old-volumes=Retain|Delete refused=(no)
//	set spec confirmed=a0,a1/DIGEST problem=(storage: shrinks)
//	set spec adopt=e1|none release=(d1 d2) abandon=true
//	set lock holder=(process 7 on b)
//
// These directives do not change anything. In this order, they print: the state as a table, the decision and its
// faults, the record that the objects must carry in the current state, the result of every rule (including rules after
// the first that applies), and the invariants, with the violated ones marked.
//
//	state
//	decide
//	standing
//	rules
//	invariants
//
// This directive carries out the decision's action. In a story, it also simulates the effects on Kubernetes and etcd
// that the state shows: the record is written, objects are corrected, and pods and volumes are created and deleted. A
// new member is only added; use set to start it. On a path, the action is from the last decide, however long ago, and
// nothing else happens before the next tick.
//
//	act
//
// # Words of stories
//
// These directives change a replica, its entry in the record, its member, the size of its database, the part in use and
// the quota in MiB, when it was last defragmented, or the observed state of etcd, the record, the status, the objects,
// the CA and its certificates.
//
//	set a-1 pod=Failing since=3m message=(exit code 1) volume=v9|terminating|none token=t9 lost=c1 used=3.6.16/3.6 mode=Founding|Joining|Restoring|Sealed|none
//	set a-1 pod=Starting started=20s
//	set a-1 pod=Terminating going=1m
//	set a-1 pod=Absent refused=(exceeded quota)
//	set a-1 made=3.6.16/h1 crashes=4 stranded=(its node is gone) stranded-for=10m removed=v1 leaving=true replaced=2
//	set a-1 unbound=true no-peers=true no-data=true stopped-by-check=true
//	set a-1 etcd=answers|silent|unstarted|added|none learner=true alarms=(NOSPACE) id=b1 cluster=c2
//	set a-1 runs=3.6.16 storage=3.6 applied=100 revision=1018 silent-for=10m disagrees=(lists a-3 as a learner) hash=5c0ffee0@120/100 hash-why=(permission denied)
//	set a-1 db=20 quota=20 in-use=10 defragmented=2h defragmentation-failure=(no space left on device)
//	set etcd known=false why=(no response within 2s) cluster=c2 leader=a-1 downgrade=3.6
//	set etcd unconfirmed|disputed|unrecorded=true why=(a-0: its member list is not confirmed)
//	set etcd forbidden=(pods/portforward is forbidden)
//	set record cluster=c2 token=t2 log=3.5 ca=none|CA1 uncompared=true founds=c1
//	set status cluster=c2 version=3.6.16 generation=2 seen=(a-0 18 a-1 20) void=true
//	set status defragment=(now) defragment-since=2m defragment-completed=true
//	set status compared=2h comparison-failure=(no) differs-since=5m
//	set backups last=10m|none revision=900 job=a-backup-gen2 generation=2 cluster=c2 in=(s3://old) verified=true to=(s3://old)
//	set backups hidden=(jobs is forbidden) foreign=(CronJob a-backup)
//	set job-29400000 created=1m stored=30s
//	set job-gen2 phase=Running|Succeeded|Failed created=5m stored=4m in=(s3://old) verified=true message=(exit code 1)
//	set job-differs created=1m differs=true
//	set restore phase=Running|Succeeded|Failed of=(tuesday of b/a) volume=v0 message=(no) restored=(rev 7) data=(c1 a0 1018) terminating=true
//	set restore job=none hidden=(jobs is forbidden) foreign=(Job a-restore) stopping=(a-restore-x)
//	set recovery phase=Running|Succeeded|Failed of=(c1 1) volume=v1 from=(tuesday) into=c2 suspect=true message=(no) terminating=true
//	set recovery job=none hidden=(jobs is forbidden) foreign=(Job a-recovery) stopping=(a-recovery-x)
//	set objects runs=none|3.6.16/h1 differs=true replicas=0 token=t2 storage=1Gi
//	set ca secret=CA1 mounted=(CA1, CA2) proven=CA1 ends=3000
//	set peer|server|client ends=99
//
// An add directive adds a finding about an object, adds a member that is not one of the cluster's replicas, adds a
// recorded guest or a member of the cluster to adopt, or adds an alarm that a removed member raised. A remove directive removes a replica and its member, or all items of one kind.
//
//	add alarm=(NOSPACE of d1)
//	add drift|backup-drift|remaining|foreign|relabelled|terminating|irreplaceable=(Service a-client: missing)
//	add rewritten|rewritten-unsafely=(StatefulSet a: spec.template.spec.nodeSelector)
//	add member name=stranger id=d1 silent
//	add guest|source name=old-0 id=d1 silent gone learner leads alarm=(NOSPACE) runs=3.6.16 db=20 hash-why=(no) peer=(http://x:2380)
//	remove a-2
//	remove record|recovery|status|pods|volumes|members|jobs|drift|rewritten|remaining|terminating|foreign|relabelled|irreplaceable
//
// This directive advances the clock.
//
//	clock +2m
//
// The directive waited records a wait of earlier passes: its reason, its beginning, and when a pass last recorded it.
// The directive report records the current wait, as the status does after a pass without changes (or, with changed,
// after a pass with changes).
//
//	waited WaitForMembers for=(a-1,a-2) since=31m seen=5m
//	report changed
//
// This directive reads a whole state from the lines below it, in YAML, as printed by "quorate plan -o state".
//
//	state
//
// # Words of paths
//
// The world is random, unless the seed is 0.
//
//	cluster a seed=7
//
// These directives change the world. Members of an adopted cluster are counted from 0.
//
//	fault kill-pod=a-1 force-delete=a-1 crash=a-1 lose-volume=a-1 delete-claim=a-1 replace-claim=a-1 recreate-claim=a-1 old-data=a-1 strand=a-1 corrupt=a-1
//	fault hang=a-1 unhang=a-1 node-down=a-1 node-up=a-1 mute=a-1 unmute=a-1 slow=a-1 fast=a-1 apart=a-1 together=a-1
//	fault unready=a-1 ready-again=a-1 nospace=a-1 fill-database compact corrupt-alarm=a-1 nameless-alarm
//	fault fragment=a-1 keep-fragmented=a-1
//	fault differ=a-1 check-data mislead=a-1 unmislead=a-1 lie=a-1 unlie=a-1
//	fault add-member=a-3 add-learner=a-3 remove-member=a-2 add-stranger
//	fault delete=(ConfigMap a-members) change=(Service a) occupy=(Service a) delete-status put-back-record
//	fault refuse-backups forget-backups schedule-backup refuse-restores start-elsewhere delete-restore
//	fault refuse-recoveries delete-recovery
//	fault adopt=3 adopt-namesakes=3 guest-down=0 guest-up=0 remove-guest=0 rejoin-guest=0 release=0
//	fault put-ca put-back-ca wear-certificates
//	fault rewrite=(StatefulSet a) rewrite-unsafely=(StatefulSet a) stop-rewriting
//	fault cut-network mend-network heal refuse-pods keep-claims refuse-handover forbid drop-annotations keep-annotations
//
// These directives are manual changes with kubectl or etcdctl. The faults above can also be used with person.
//
//	person force-new-cluster=a-0 promote=a-3 scale=1 disarm=CORRUPT
//	person delete-claims delete-orphaning=(StatefulSet a) restore=3 restore-object=(3 ConfigMap a-members)
//	person unlist-claim=a-1 relist-claim=a-1 disown-claim=a-1 mark-claim=a-1 unmark-claim=a-1 own-claim=a-1 unlist-pod=a-1 relist-pod=a-1 register-node=a-1
//
// This directive does not change anything. It prints the forecast: the actions that passes will carry out, in order,
// and the states of etcd in between.
//
//	road
//
// This directive advances the time without a pass.
//
//	tick 3
//
// This directive runs passes, each followed by a tick, regardless of their results. The first pass can die after a
// number of writes, or its next write can fail, or it can miss objects, or observe a state that is a number of ticks
// old.
//
//	pass 2 crash=3
//	pass 1 fail=0
//	pass 1 missing-claim=a-1
//	pass 1 missing-pod=a-1
//	pass 1 old-kubernetes=2
//	pass 1 old-etcd=2
//
// This directive runs passes until a pass reports Done or Block. With crash=after-each, it repeats this for every
// write: the pass dies after the write, or the next write fails, and the result must be the same.
//
//	converge max=40 crash=after-each
//
// This directive ends all faults that can be ended, makes git's declaration valid, and runs passes until a pass reports
// Done or Block.
//
//	settle
//
// [datadriven]: https://github.com/cockroachdb/datadriven
package decidetest
