package podstate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestReread: the newest pod's result of rereading stored backups is returned if it is plausible.
func TestReread(t *testing.T) {
	told := func(after time.Duration, damaged string) string {
		return fmt.Sprintf(`{"format":"quorate.dev/reread-result/v1","at":"%s","backups":7,"read":1,"bytes":5,"damaged":["%s"]}`, made.Add(after).Format(time.RFC3339), damaged)
	}
	const one, other = "20261120t180000z", "20261119t180000z"
	first := podOf("", ran("backup", 0, word(0)), ran("reread", 0, told(time.Minute, one)))
	second := podOf("", ran("backup", 0, word(0)), ran("reread", 0, told(2*time.Minute, other)))
	second.CreationTimestamp.Time = made.Add(time.Minute)
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"no pod":           {nil, ""},
		"one":              {[]*corev1.Pod{first}, one},
		"two":              {[]*corev1.Pod{second, first}, other},
		"it has failed":    {[]*corev1.Pod{podOf("", ran("reread", 1, told(time.Minute, one)))}, ""},
		"no word":          {[]*corev1.Pod{podOf("", ran("reread", 0, "done"))}, ""},
		"another's word":   {[]*corev1.Pod{podOf("", ran("reread", 0, word(0)))}, ""},
		"of before":        {[]*corev1.Pod{podOf("", ran("reread", 0, told(-time.Hour, one)))}, ""},
		"of tomorrow":      {[]*corev1.Pod{podOf("", ran("reread", 0, told(24*time.Hour, one)))}, ""},
		"the older's word": {[]*corev1.Pod{first, podOf("", ran("reread", 137, ""))}, one},
	} {
		got := ""
		r := Reread(backupJob(), test.pods, made.Add(3*time.Minute))
		if r != nil {
			got = r.Damaged[0]
			if r.Job != "a-backup-gen2" || r.Backups != 7 || r.Read != 1 || !slices.Equal(r.Damaged, []string{got}) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
