package clusters

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHolderIdentityRoundTrip(t *testing.T) {
	for _, part := range []string{"", "eu-1", "arn:aws:eks:eu-1:1:cluster/a"} {
		me := thisHolder(part)
		if me.Process == "" {
			t.Skip("this system does not tell processes of one number apart")
		}
		if got := parseHolder(me.String()); got != me {
			t.Errorf("got %+v, want %+v", got, me)
		}
		if me.gone() {
			t.Error("this very process is taken for gone")
		}
	}
}

// Two parts of one process that unknowingly work on the same Kubernetes cluster do not act on one cluster at the same
// time.
func TestPartsHaveLeasesOfTheirOwn(t *testing.T) {
	eu, again := New(nil, Options{Part: "eu"}), New(nil, Options{Part: "eu-again"})
	identity, seconds, now := eu.holder.String(), int32(15), metav1.NowMicro()
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: &seconds, RenewTime: &now}}
	if again.lockHolder(lease, now.Time) == "" {
		t.Error("one takes the lease of the other for its own")
	}
	if who := eu.lockHolder(lease, now.Time); who != "" {
		t.Errorf("its own lease is held by %s", who)
	}
}

func TestHolderGone(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	h := holder{Host: thisHolder("").Host, PID: child.Process.Pid}
	var err error
	if h.Process, err = proc.process(h.PID); err != nil {
		t.Skip("this system does not tell processes of one number apart")
	}
	hidden := procfs(t.TempDir()) // which shows only this process
	if err := errors.Join(os.MkdirAll(hidden.path("sys/kernel/random"), 0o700), os.MkdirAll(hidden.path("self/ns"), 0o700),
		os.WriteFile(hidden.path("sys/kernel/random/boot_id"), []byte("boot"), 0o600), os.Symlink("pid:[1]", hidden.path("self/ns/pid"))); err != nil {
		t.Fatal(err)
	}
	if process, err := hidden.process(h.PID); err == nil || errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process that may not be looked at is taken for %q, %v", process, err)
	}
	if h.gone() {
		t.Error("a running process is taken for gone")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	if !h.gone() {
		t.Error("an ended process is not seen to be gone")
	}
	if _, err := hidden.process(h.PID); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("of an ended process one is told %v", err)
	}
	for _, elsewhere := range []holder{{Host: h.Host, PID: h.PID, Process: "00000000.1.1"}, {Host: "elsewhere", PID: h.PID, Process: h.Process}} {
		if elsewhere.gone() {
			t.Errorf("a process of another system is taken for gone: %+v", elsewhere)
		}
	}
}

func TestLockHolder(t *testing.T) {
	live := &Live{holder: thisHolder("")}
	now := time.Unix(1_000_000, 0)
	lease := func(holder string, renewed time.Time) *coordinationv1.Lease {
		seconds := int32(15)
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds,
			AcquireTime: &metav1.MicroTime{Time: renewed}, RenewTime: &metav1.MicroTime{Time: renewed},
		}}
	}
	other := holder{Host: "runner-7", PID: 42, Process: "00000000.1.1"}.String()
	dead := holder{Host: live.holder.Host, PID: os.Getpid(), Process: pidNamespaceOf(thisHolder("").Process) + "1"}.String()
	tests := []struct {
		name  string
		lease *coordinationv1.Lease
		want  string
	}{
		{"none", nil, ""},
		{"released", lease("", now), ""},
		{"mine", lease(live.holder.String(), now), ""},
		{"another's", lease(other, now), "process 42 on runner-7 holds the lease since 1970-01-12T13:46:40Z"},
		{"another's, run out", lease(other, now.Add(-16*time.Second)), ""},
		{"of a process that died on this host", lease(dead, now), ""},
		{"of another kind of holder", lease("someone", now), "process 0 on someone holds the lease since 1970-01-12T13:46:40Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := live.lockHolder(test.lease, now); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
