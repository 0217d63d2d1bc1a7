package objects

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// Normalize normalizes, in place, the declared values that appear in the objects of a cluster: durations, quantities,
// and pod settings that have no effect. It does not change fields that are included in the digest of a restore or
// recovery, because a different digest means a new request.
func Normalize(c *v1alpha1.EtcdCluster) {
	c.Spec.Storage.Size = NormalSize(c.Spec.Storage.Size)
	normalizePod(&c.Spec.Pod, c.Name)
	if a := c.Spec.Etcd.AutoCompaction; a != nil {
		a.Retention = normalRetention(a.Mode, a.Retention)
	}
	if d := c.Spec.Etcd.Defragmentation; d != nil && d.Window != nil {
		d.Window.Duration = normalDuration(d.Window.Duration)
	}
	b := c.Spec.Backup
	if b == nil {
		return
	}
	durations := []*v1alpha1.Duration{&b.Deadline}
	if b.Retention != nil {
		durations = append(durations, &b.Retention.MinAge)
	}
	if b.To.S3 != nil {
		durations = append(durations, &b.To.S3.LockFor)
	}
	for _, d := range durations {
		*d = normalDuration(*d)
	}
}

// normalizeEtcd normalizes the options whose effective value is written to the configuration files.
func normalizeEtcd(o *v1alpha1.EtcdOptions) {
	const byDefault v1alpha1.Duration = "1000ms" // as in the EtcdCluster definition
	o.Quota, o.MaxRequestBytes = normalQuantity(o.Quota, 0), normalQuantity(o.MaxRequestBytes, 0)
	o.HeartbeatInterval, o.ElectionTimeout = normalDuration(o.HeartbeatInterval), normalDuration(o.ElectionTimeout)
	if o.ElectionTimeout == normalDuration(byDefault) {
		o.ElectionTimeout = byDefault
	}
	for name, value := range o.Options {
		switch options[name].kind {
		case duration:
			o.Options[name] = normalDuration(value)
		case number:
			o.Options[name] = v1alpha1.OptionValue(normalNumber(string(value)))
		case word, boolean: // has only one notation
		}
	}
}

// normalDuration formats a duration in the largest unit that divides it. It returns invalid durations unchanged.
func normalDuration[T ~string](text T) T {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return text
	}
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if d != 0 && d%unit.length == 0 {
			return T(fmt.Sprintf("%d%s", d/unit.length, unit.name))
		}
	}
	return T(d.String())
}

func normalNumber(text string) string {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return text
	}
	return strconv.FormatUint(n, 10)
}

func normalRetention(mode v1alpha1.CompactionMode, text string) string {
	if mode == v1alpha1.CompactionPeriodic {
		return normalDuration(text)
	}
	return normalNumber(text)
}

// mostDigits is the largest decimal exponent, positive or negative, of a quantity to normalize. Rounding a quantity
// with a much larger exponent takes seconds, and the schema rejects it.
const mostDigits = 18

// normalQuantity rounds a quantity up to the given scale and formats it with decimal or binary units, whichever is
// shorter.
func normalQuantity(q resource.Quantity, scale resource.Scale) resource.Quantity {
	exact := q.DeepCopy() // AsDec changes its receiver
	if digits := exact.AsDec().Scale(); q.IsZero() || digits < -mostDigits || digits > mostDigits {
		return q
	}
	q = q.DeepCopy()
	q.RoundUp(scale)
	shortest := ""
	for _, format := range []resource.Format{resource.DecimalSI, resource.BinarySI} {
		q.Format = format
		digits, suffix := q.CanonicalizeBytes(make([]byte, 0, mostDigits))
		if text := string(digits) + string(suffix); shortest == "" || len(text) < len(shortest) {
			shortest = text
		}
	}
	return resource.MustParse(shortest)
}

// NormalSize normalizes the size of a volume.
func NormalSize(q resource.Quantity) resource.Quantity { return normalQuantity(q, resource.Milli) }

func normalizePod(pod *v1alpha1.PodSpec, cluster string) {
	normalizeResources(&pod.Resources)
	pod.Affinity = normalAffinity(pod.Affinity)
	for i := range pod.Tolerations {
		if pod.Tolerations[i].Operator == string(corev1.TolerationOpEqual) { // the default
			pod.Tolerations[i].Operator = ""
		}
	}
	pod.TopologySpreadConstraints = normalSpread(pod.TopologySpreadConstraints, cluster)
}

// normalizeResources normalizes quantities and sets missing requests to the limits, as the API server does for pods.
func normalizeResources(r *v1alpha1.ResourceRequirements) {
	for _, list := range []*map[string]resource.Quantity{&r.Limits, &r.Requests} {
		for name, quantity := range *list {
			(*list)[name] = normalQuantity(quantity, resource.Milli)
		}
		if len(*list) == 0 {
			*list = nil
		}
	}
	for name, limit := range r.Limits {
		if _, requested := r.Requests[name]; requested {
			continue
		}
		if r.Requests == nil {
			r.Requests = map[string]resource.Quantity{}
		}
		r.Requests[name] = limit
	}
}

// normalAffinity removes parts without terms, but keeps label selectors without requirements, because they select all
// pods.
func normalAffinity(a *v1alpha1.Affinity) *v1alpha1.Affinity {
	if a == nil {
		return nil
	}
	if n := a.NodeAffinity; n != nil && n.Required == nil && len(n.Preferred) == 0 {
		a.NodeAffinity = nil
	}
	if n := a.NodeAffinity; n != nil && n.Required != nil && len(n.Required.NodeSelectorTerms) == 0 {
		n.Required.NodeSelectorTerms = []v1alpha1.NodeSelectorTerm{} // does not select any node
	}
	for _, part := range []**v1alpha1.PodAffinity{&a.PodAffinity, &a.PodAntiAffinity} {
		if p := *part; p != nil && len(p.Required)+len(p.Preferred) == 0 {
			*part = nil
		}
	}
	if *a == (v1alpha1.Affinity{}) {
		return nil
	}
	return a
}

// withoutDefault removes a value that equals the default.
func withoutDefault[T comparable](value **T, byDefault T) {
	if *value != nil && **value == byDefault {
		*value = nil
	}
}

// normalSpread removes Kubernetes' defaults and the fields that spreadConstraints fills in.
func normalSpread(list []v1alpha1.TopologySpreadConstraint, cluster string) []v1alpha1.TopologySpreadConstraint {
	own := &metav1.LabelSelector{MatchLabels: Selector(cluster)}
	var byDefault []v1alpha1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
		byDefault = append(byDefault, v1alpha1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: string(corev1.ScheduleAnyway)})
	}
	for i := range list {
		if s := list[i].LabelSelector; s != nil && len(s.MatchExpressions) == 0 &&
			reflect.DeepEqual(s.MatchLabels, own.MatchLabels) {
			list[i].LabelSelector = nil
		}
		if len(list[i].MatchLabelKeys) == 0 {
			list[i].MatchLabelKeys = nil
		}
		if list[i].WhenUnsatisfiable == string(corev1.DoNotSchedule) { // minDomains is invalid otherwise
			withoutDefault(&list[i].MinDomains, 1)
		}
		withoutDefault(&list[i].NodeAffinityPolicy, string(corev1.NodeInclusionPolicyHonor))
		withoutDefault(&list[i].NodeTaintsPolicy, string(corev1.NodeInclusionPolicyIgnore))
	}
	if reflect.DeepEqual(list, byDefault) {
		return nil
	}
	return list
}
