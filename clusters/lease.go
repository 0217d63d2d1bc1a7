package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/panics"
)

// lockHolder names the other pass that holds a lease; empty if none does.
func (l *Live) lockHolder(lease *coordinationv1.Lease, now time.Time) string {
	identity := identityIn(lease)
	if identity == "" || identity == l.holder.String() || lease.Spec.LeaseDurationSeconds == nil {
		return ""
	}
	other := parseHolder(identity)
	if now.After(runsOut(lease)) || other.gone() {
		return ""
	}
	since := lease.Spec.RenewTime
	if lease.Spec.AcquireTime != nil {
		since = lease.Spec.AcquireTime
	}
	return fmt.Sprintf("%s holds the lease since %s", other.Words(), since.UTC().Format(time.RFC3339))
}

// runsOut is when a lease is free unless it is renewed.
func runsOut(lease *coordinationv1.Lease) time.Time {
	return lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
}

// identityIn is who holds a lease, or held it last; empty if nobody does, or it does not say since
// when.
func identityIn(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// tenure is this process' hold on the lease of a cluster while it acts.
type tenure struct {
	live *Live
	want metav1.ObjectMeta

	mu    sync.Mutex
	lease *coordinationv1.Lease // nil: there is none yet
}

// hold takes the lease of the cluster before anything is written, which succeeds only if nobody has
// acted since the cluster was observed, and renews it until release is called. The context that it
// returns ends, with ErrLocked as its cause, as soon as the lease is known to be lost.
func (c *cluster) hold(ctx context.Context) (held context.Context, release func(), err error) {
	k := c.target.Key()
	t := &tenure{live: c.live, lease: c.own.Lease,
		want: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name, Labels: objects.Labels(k.Name)}}
	if c.own.Custom != nil {
		t.want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.own.Custom,
			v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}
	}
	if err := t.renew(ctx); err != nil {
		return nil, nil, err
	}
	c.tenure = t
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := panics.Catch(func() error { t.keep(ctx, cancel); return nil }); err != nil {
			cancel(err) // nobody renews the lease any more
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
		c.own.Lease = t.lease
	}, nil
}

// keep renews the lease until ctx is done, and cancels it once the lease is lost.
func (t *tenure) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(max(t.live.options.LeaseDuration/3, 100*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := t.renew(ctx); errors.Is(err, reconcile.ErrLocked) {
			cancel(err)
			return
		}
	}
}

// renew takes the lease over the version that was seen last, unless it was renewed a moment ago.
// Another version means that somebody else has taken it. A renewal that fails otherwise may be
// tried again as long as the lease has not run out.
func (t *tenure) renew(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, now := t.live, time.Now()
	if t.ours() && now.Sub(t.lease.Spec.RenewTime.Time) < l.options.LeaseDuration/4 {
		return nil
	}
	taken, err := l.at(t.want.Namespace).TakeLease(ctx, t.want, t.lease, l.holder.String(),
		l.options.LeaseDuration, now)
	if errors.Is(err, kube.ErrLeaseTaken) {
		return fmt.Errorf("%w: %w", reconcile.ErrLocked, err)
	}
	if err != nil {
		return err
	}
	t.lease = taken
	l.mu.Lock()
	maps.DeleteFunc(l.held, func(_ inventory.Key, lease *coordinationv1.Lease) bool {
		return now.After(runsOut(lease))
	})
	l.held[inventory.Key{Namespace: taken.Namespace, Name: taken.Name}] = taken
	l.mu.Unlock()
	return nil
}

// ours reports whether the lease was this process' own when it was seen last.
func (t *tenure) ours() bool {
	return identityIn(t.lease) == t.live.holder.String()
}

// stillOurs returns nil if a write may go out: the lease is held, and stays so for long enough.
// Each write asks first, so that a process that was stopped for a while, or cut off from the API
// server, writes nothing more.
func (c *cluster) stillOurs(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.tenure == nil {
		return errors.New("nothing is written without the lease")
	}
	err := c.tenure.renew(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // keep has found out meanwhile that the lease is lost, which ends what renew asks
	}
	return err
}

// holder identifies the process that holds a lease: the host, the process, and what tells that
// process from another one of the same number. Where the latter can be had, a lease left behind by
// a process that died on this very host is known to be free at once; elsewhere one waits until it
// runs out.
type holder struct {
	Host string
	PID  int
	// Process is the boot, the PID namespace and the start time of the process; empty where the
	// system does not tell.
	Process string
	// Part tells the parts of one process apart that are each about a Kubernetes cluster; empty where there are none.
	Part string
}

// thisHolder is this process, or the part of it that has this name.
func thisHolder(part string) holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h := holder{Host: host, PID: os.Getpid(), Process: processOf(os.Getpid())}
	if part != "" { // whoever names a context may have any characters in it
		sum := sha256.Sum256([]byte(part))
		h.Part = hex.EncodeToString(sum[:4])
	}
	return h
}

// String is the holder identity in the lease.
func (h holder) String() string {
	identity := fmt.Sprintf("%s/%d/%s", h.Host, h.PID, h.Process)
	if h.Part != "" {
		identity += "/" + h.Part
	}
	return identity
}

// Words names the holder for people.
func (h holder) Words() string { return fmt.Sprintf("process %d on %s", h.PID, h.Host) }

// parseHolder reads a holder identity; one that others wrote becomes the name of a host.
func parseHolder(identity string) holder {
	parts := strings.Split(identity, "/")
	if len(parts) != 3 && len(parts) != 4 {
		return holder{Host: identity}
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return holder{Host: identity}
	}
	return holder{Host: parts[0], PID: pid, Process: parts[2], Part: strings.Join(parts[3:], "")}
}

// gone reports whether that holder is known to have ended: it ran in this boot and PID namespace,
// and no process of its number and start time is there.
func (h holder) gone() bool {
	here := processOf(os.Getpid())
	if h.Process == "" || here == "" || pidNamespaceOf(h.Process) != pidNamespaceOf(here) {
		return false
	}
	return processOf(h.PID) != h.Process
}

// pidNamespaceOf is the part of an identity that processes of one boot and PID namespace share.
func pidNamespaceOf(process string) string { return process[:strings.LastIndex(process, ".")+1] }

// processOf describes a process of this system as boot.namespace.start; empty if that cannot be
// known or it does not exist.
func processOf(pid int) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The command, in parentheses, may hold anything; the start time is the 20th field after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fmt.Sprintf("%.8s.%s.%s", boot, strings.Trim(namespace, "pid:[]"), fields[19])
}
