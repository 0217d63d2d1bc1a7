package clusters

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// noteRewritten records the fields of an object that the API server returned with different values, because an
// admission policy or webhook has set them.
func (c *cluster) noteRewritten(applied objects.Object, live metav1.Object) error {
	different, err := differences(applied, live)
	if err != nil {
		return err
	}
	id := applied.String()
	c.forgetRewritten(id)
	for _, d := range different {
		if d.Path == "metadata.uid" || d.Path == "metadata.resourceVersion" {
			continue // only identifies the version that was applied over
		}
		c.rewritten = append(c.rewritten, rewrittenField(id, d, live))
	}
	return nil
}

// noteRewrittenCluster is like noteRewritten, but for the custom resource. It records only the first such field.
func (c *cluster) noteRewrittenCluster(live *v1alpha1.EtcdCluster) {
	id := v1alpha1.Kind + " " + live.Name
	c.forgetRewritten(id)
	if what := c.target.Drift(live); what != "" {
		c.rewritten = append(c.rewritten, c.rewrittenCluster(what, live))
	}
}

func (c *cluster) rewrittenCluster(what string, live *v1alpha1.EtcdCluster) decide.RewrittenField {
	d := objects.Difference{Path: what, From: live.Spec, To: c.target.Declaration()}
	return rewrittenField(v1alpha1.Kind+" "+live.Name, d, live)
}

func (c *cluster) forgetRewritten(object string) {
	c.rewritten = slices.DeleteFunc(c.rewritten, func(f decide.RewrittenField) bool { return f.Object == object })
}

// differences returns the fields of a live object that differ from the wanted fields and that Quorate owns or will own,
// and the unwanted keys of a ConfigMap.
func differences(wanted objects.Object, live metav1.Object) ([]objects.Difference, error) {
	owned, err := kube.Owned(live)
	if err != nil {
		return nil, err
	}
	different, err := objects.Values(wanted.Apply, owned, nil)
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", wanted.Identity, err)
	}
	listed := map[string]bool{}
	for _, d := range different {
		listed[d.Path] = true
	}
	for _, key := range objects.UnwantedKeys(wanted, live) {
		// A key that Quorate set is already listed; a key that another tool set is not.
		if path := "data." + key; !listed[path] {
			different = append(different, objects.Difference{Path: path, From: key})
		}
	}
	return different, nil
}

// rewrittenField returns a description of a field that differs from the wanted value. It contains only a digest of the
// values, because they may be secret.
func rewrittenField(object string, d objects.Difference, live metav1.Object) decide.RewrittenField {
	values, _ := json.Marshal([]any{d.To, d.From}) // they were decoded from JSON
	sum := sha256.Sum256(values)
	kind, _, _ := strings.Cut(object, " ")
	return decide.RewrittenField{Object: object, Field: d.Path, By: kube.OwnerOf(live, d.Path),
		Accepted: objects.MayBeRewritten(kind, d.Path), Digest: hex.EncodeToString(sum[:8])}
}

// isRewritten reports whether an earlier pass found this difference right after applying the object. If either value
// has changed since, it is a new difference.
func (c *cluster) isRewritten(f decide.RewrittenField) bool {
	if c.own.Custom == nil {
		return false
	}
	return slices.ContainsFunc(c.own.Custom.Status.Rewritten, func(r v1alpha1.RewrittenField) bool {
		return r.Object == f.Object && r.Field == f.Field && r.Digest == f.Digest
	})
}

// sortOut records rewritten fields and returns the differences to correct.
func (c *cluster) sortOut(fields []decide.RewrittenField) (drift []decide.RewrittenField) {
	for _, f := range fields {
		known := c.isRewritten(f)
		if known {
			c.state.Objects.Rewritten = append(c.state.Objects.Rewritten, f)
		}
		if !known || !f.Accepted {
			drift = append(drift, f)
		}
	}
	return drift
}
