package clusters

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// TestClaimsAreAnnotatedWithLastUse checks that the claims of responding members are annotated with the version and
// cluster ID of the member. Annotations that the API server does not keep are reported.
func TestClaimsAreAnnotatedWithLastUse(t *testing.T) {
	for what, c := range map[string]struct {
		code  int
		keeps bool
		fails string
	}{
		"annotation is kept":                {200, true, ""},
		"annotation is removed by a policy": {200, false, "the API server did not keep"},
		"annotating is forbidden":           {403, false, "annotate PersistentVolumeClaim"},
		"claim was replaced":                {409, false, ""},
		"claim does not exist":              {404, false, ""},
	} {
		l := newLife(t)
		l.etcd.running[2].hangs.Store(true)
		var sent []string
		c1 := l.seen(l.old)
		for i := range c1.state.Replicas {
			c1.state.Replicas[i].VolumeUID = fmt.Sprint("volume-", i)
		}
		c1.live.kube = clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = append(sent, r.Method+" "+r.URL.Path)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.code)
			if c.code != 200 {
				_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
					Status: metav1.StatusFailure, Reason: map[int]metav1.StatusReason{403: "Forbidden", 404: "NotFound", 409: "Conflict"}[c.code], Code: int32(c.code)})
				return
			}
			claim := corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}}
			if c.keeps {
				_ = json.Unmarshal(body, &claim)
			}
			_ = json.NewEncoder(w).Encode(claim)
		}))
		err := c1.annotateClaims(t.Context())
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v", what, err)
		}
		if len(sent) != 2 || !strings.HasSuffix(sent[0], "/persistentvolumeclaims/data-a-0") || !strings.HasSuffix(sent[1], "data-a-1") {
			t.Errorf("%s: %q", what, sent)
		}
	}
}

// TestLastUseRoundTrip checks that the annotations of a claim are read back as they were written, and that invalid
// values count as unknown.
func TestLastUseRoundTrip(t *testing.T) {
	for _, use := range []decide.LastUse{{}, {ClusterID: 0xc1, Version: "3.6.16", StorageVersion: "3.6"}, {ClusterID: 1, Version: "3.5.35"}} {
		if got := objects.LastUse(objects.LastUseAnnotations(use)); got != use {
			t.Errorf("%+v was read as %+v", use, got)
		}
	}
	if got := objects.LastUse(map[string]string{objects.AnnotationClusterID: "x", objects.AnnotationVersion: "3.6.16"}); got.ClusterID != 0 || got.Version != "3.6.16" {
		t.Errorf("%+v", got)
	}
}
