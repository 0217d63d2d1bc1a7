package clusters

import (
	"encoding/json"
	"fmt"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Changes implements reconcile.Cluster. It compares the live and the declared state, limited to the fields that Quorate
// owns or will own. Before the cluster is bootstrapped, everything is new, so Changes returns nil.
func (c *cluster) Changes(next decide.Action) ([]report.Change, error) {
	if c.state.Record.Token == "" && !c.state.Formed() {
		return nil, nil
	}
	changes, err := c.customChanges()
	if err != nil {
		return nil, err
	}
	wanted, err := c.standing(next)
	if err != nil {
		return changes, err
	}
	_, rolls := next.(decide.StartRollout)
	for _, object := range wanted {
		id := object.Kind + "/" + object.Name
		if live := c.own.Objects[id]; c.drifted[id] || rolls && live != nil && rolledOut(object) {
			of, err := changesOf(object, live)
			if err != nil {
				return changes, err
			}
			changes = append(changes, of...)
		}
	}
	for _, object := range c.surplus() {
		if c.drifted[object.Kind+"/"+object.Name] {
			changes = append(changes, report.Change{Object: object.String(), What: report.Deleted})
		}
	}
	return changes, nil
}

// customChanges returns the changes to the custom resource in the fields that git sets or has set before.
func (c *cluster) customChanges() ([]report.Change, error) {
	custom, name := c.own.Custom, c.target.Cluster.Name
	if !c.drifted[v1alpha1.Kind+"/"+name] {
		return nil, nil
	}
	if custom == nil {
		return []report.Change{{Object: v1alpha1.Kind + " " + name, What: report.Made}}, nil
	}
	stated := c.target.Declaration()
	metadata, _ := stated["metadata"].(map[string]any)
	is, err := asTold(custom.Labels, custom.Annotations, custom.Spec)
	if err != nil {
		return nil, err
	}
	wanted, err := asTold(metadata["labels"], metadata["annotations"], c.target.Cluster.Spec)
	if err != nil {
		return nil, err
	}
	ours := kube.FieldsOf(stated).With(kube.OwnedFields(custom))
	return report.Changes(ours.Of(is), ours.Of(wanted)), nil
}

// asTold returns the parts of a custom resource to report, as decoded JSON.
func asTold(labels, annotations, spec any) (told map[string]any, err error) {
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": labels, "annotations": annotations}, "spec": spec,
	})
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil {
		return nil, fmt.Errorf("encode the declaration: %w", err)
	}
	metadata, _ := told["metadata"].(map[string]any)
	if written, is := metadata["annotations"].(map[string]any); is {
		delete(written, targets.AnnotationDeclaration) // this annotation only shows that another field has changed
	}
	return told, nil
}

// changesOf returns the changes to an object that has drifted, or reports its creation if live is nil. It never reports
// the content of Secrets.
func changesOf(wanted objects.Object, live any) ([]report.Change, error) {
	name := wanted.String()
	switch {
	case live == nil:
		return []report.Change{{Object: name, What: report.Made}}, nil
	case wanted.Kind == "Secret":
		return []report.Change{{Object: name, What: report.Changed}}, nil
	}
	ours, err := kube.Owned(live)
	if err != nil {
		return nil, err
	}
	values, err := objects.Values(wanted.Apply, ours, live)
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", name, err)
	}
	var changes []report.Change
	for _, d := range values {
		changes = append(changes, report.Change{Object: name, Field: d.Path, From: d.From, To: d.To})
	}
	return changes, nil
}
