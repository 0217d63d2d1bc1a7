package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/schedule"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// A request to defragment all members is shown unchanged if it is printable and has at most longestRequest bytes.
// Otherwise, it is truncated to shownOfRequest bytes, and a digest is appended.
const (
	longestRequest = 64
	shownOfRequest = 44
)

// DefragmentationOf returns the declared defragmentation.
func DefragmentationOf(c *v1alpha1.EtcdCluster) decide.Defragmentation {
	order := decide.Defragmentation{Request: requestOf(c)}
	if d := c.Spec.Etcd.Defragmentation; d != nil {
		order.MinFreePercent, order.MinFree = int(d.MinFreePercent), ApproximateBytes(d.MinFree)
		order.Windowed = d.Window != nil
	}
	return order
}

// requestOf returns the request to defragment all members, in a form that is safe to display, or "". Different
// annotations yield different requests.
func requestOf(c *v1alpha1.EtcdCluster) string {
	text := strings.TrimSpace(c.Annotations[v1alpha1.AnnotationDefragment])
	shown := printable.Line(text)
	if shown == text && len(text) <= longestRequest {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(shown[:min(len(shown), shownOfRequest)], "") + "~" + hex.EncodeToString(sum[:8])
}

// WindowClosed reports whether a maintenance window for defragmentation is declared but not open at the given time. A
// window that cannot be parsed is never open.
func WindowClosed(c *v1alpha1.EtcdCluster, now time.Time) bool {
	d := c.Spec.Etcd.Defragmentation
	if d == nil || d.Window == nil {
		return false
	}
	times, err := schedule.Parse(d.Window.Schedule, d.Window.TimeZone, c.Namespace+"/"+c.Name)
	length, invalid := time.ParseDuration(string(d.Window.Duration))
	if err != nil || invalid != nil {
		return true // declarations are validated when they are read
	}
	opened := times.Newest(now)
	return opened.IsZero() || now.Sub(opened) >= length
}

// checkDefragmentation returns the problems with spec.etcd.defragmentation that the EtcdCluster definition cannot
// detect.
func checkDefragmentation(spec v1alpha1.EtcdClusterSpec, namespace, name string) []string {
	d := spec.Etcd.Defragmentation
	if d == nil || d.Window == nil {
		return nil
	}
	return checkSchedule("spec.etcd.defragmentation.window", d.Window.Schedule, d.Window.TimeZone, namespace+"/"+name)
}
