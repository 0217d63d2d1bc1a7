package backup

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"filippo.io/age"

	"quorate.dev/quorate/clusters/backup/store"
)

// TestAllRecipientsCanRead checks that a backup that could not be read back is not stored. age writes headers for more
// recipients than it can read.
func TestAllRecipientsCanRead(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	const most = 1024 // age's limit
	for _, count := range []int{1, most, most + 1} {
		b, o := bucketIn(t, t.TempDir()), order(t)
		o.Encoding.Recipients = slices.Repeat([]age.Recipient{identity.Recipient()}, count)
		taken, err := Take(t.Context(), sound(t), o)
		if err != nil {
			t.Fatal(err)
		}
		m, err := taken.Store(t.Context(), b, o)
		if count > most {
			listed, listErr := store.List(t.Context(), b, store.Cluster{})
			if !errors.Is(err, ErrRecipients) || listErr != nil || len(listed.Backups)+len(listed.Data) > 0 {
				t.Errorf("%d recipients: %v; stored %+v, %v", count, err, listed, listErr)
			}
			continue
		}
		if err == nil {
			_, err = Fetch(t.Context(), b, m, filepath.Join(t.TempDir(), "s.db"), reading(identity))
		}
		if err != nil {
			t.Errorf("%d recipients: %v", count, err)
		}
	}
}
