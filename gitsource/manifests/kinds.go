package manifests

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// wrongKind returns why an object is not an EtcdCluster, or "" if it is an EtcdCluster.
func wrongKind(value map[string]any) string {
	apiVersion, _ := value["apiVersion"].(string)
	kind, _ := value["kind"].(string)
	want := v1alpha1.GroupVersion.String() + " " + v1alpha1.Kind
	switch {
	case kind == v1alpha1.Kind && apiVersion == v1alpha1.GroupVersion.String():
		return ""
	case isEncrypted(value):
		return encrypted
	case isList(value):
		return fmt.Sprintf("%s is not supported; write its items as separate documents", kind)
	case apiVersion == "" && kind == "":
		return fmt.Sprintf("apiVersion and kind are missing; only %s is supported", want)
	case apiVersion == "" || kind == "":
		return fmt.Sprintf("%s is missing; only %s is supported", missing(apiVersion), want)
	case kind == v1alpha1.Kind && groupOf(apiVersion) == v1alpha1.GroupVersion.Group:
		return fmt.Sprintf("apiVersion %s of %s is not supported; use %s", apiVersion, kind, v1alpha1.GroupVersion)
	default:
		return fmt.Sprintf("%s %s is not supported; only %s is supported", apiVersion, kind, want)
	}
}

func missing(apiVersion string) string {
	if apiVersion == "" {
		return "apiVersion"
	}
	return "kind"
}

const encrypted = "is encrypted with SOPS, which is not supported; " +
	"an EtcdCluster contains no secrets: commit it unencrypted"

// isEncrypted reports whether the object was encrypted with SOPS, which adds its own metadata.
func isEncrypted(value map[string]any) bool {
	sops, ok := value["sops"].(map[string]any)
	return ok && sops["mac"] != nil
}

func isList(value map[string]any) bool {
	kind, _ := value["kind"].(string)
	_, hasItems := value["items"].([]any)
	return strings.HasSuffix(kind, "List") || hasItems
}

func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}

// isOfOtherKind reports whether an object is certainly not an EtcdCluster and does not contain an EtcdCluster. The
// object may have problems.
func (o object) isOfOtherKind() bool {
	if len(o.problems) > 0 {
		return o.node != nil && isOther(onlyText(o.node, "apiVersion"), onlyText(o.node, "kind")) &&
			valueOf(o.node, "items") == nil
	}
	apiVersion, _ := o.value["apiVersion"].(string)
	kind, _ := o.value["kind"].(string)
	return isOther(apiVersion, kind) && !(isList(o.value) && holdsCluster(o.value["items"]))
}

// isOther reports whether an object is certainly not meant as an EtcdCluster. It does not only compare kinds, because
// an object that may be meant as an EtcdCluster must never be ignored.
func isOther(apiVersion, kind string) bool {
	return apiVersion != "" && kind != "" && !strings.HasPrefix(kind, "ENC[") &&
		!strings.EqualFold(kind, v1alpha1.Kind) && !strings.EqualFold(groupOf(apiVersion), v1alpha1.GroupVersion.Group)
}

// holdsCluster reports whether an item of a list, or of a nested list, may be meant as an EtcdCluster.
func holdsCluster(items any) bool {
	list, ok := items.([]any)
	if !ok {
		return items != nil
	}
	for _, item := range list {
		if value, ok := item.(map[string]any); !ok || !(object{value: value}).isOfOtherKind() {
			return true
		}
	}
	return false
}

// onlyText returns the text of a key that occurs exactly once in a mapping, or "".
func onlyText(n *yaml.Node, key string) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	times := 0
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			times++
		}
	}
	if times != 1 {
		return ""
	}
	return textAt(n, key)
}
