package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// TestAbandonedS3UploadsAreAborted checks that old S3 uploads left behind by killed processes are aborted, but only
// uploads of data to the same directory. Recent uploads are kept, and stored data is not affected.
func TestAbandonedS3UploadsAreAborted(t *testing.T) {
	b, _ := versitygw(t)
	c := client(t, b)
	const dir = "ns/a/00000000000000aa/"
	data, later := dir+"20261122t180000z-12-0a1b2c3d.db.zst", dir+"20261122t190000z-12-0a1b2c3d.db.zst"
	begin := func(key string) {
		t.Helper()
		if _, err := c.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String("backups"), Key: &key}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"ours/" + data, "ours/" + dir + "somebody else's", "ours/ns/b/00000000000000aa/20261122t180000z-12-0a1b2c3d.db", data} {
		begin(key)
	}
	left := func() (keys []string) {
		t.Helper()
		found, err := c.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: aws.String("backups")})
		if err != nil {
			t.Fatal(err)
		}
		for _, upload := range found.Uploads {
			keys = append(keys, aws.ToString(upload.Key))
		}
		slices.Sort(keys)
		return keys
	}
	all := left()
	if err := b.Create(t.Context(), later, strings.NewReader("data")); err != nil {
		t.Fatal(err)
	}
	if got := left(); len(all) != 4 || !slices.Equal(got, all) {
		t.Errorf("uploads in progress: %q, want %q", got, all)
	}
	b.clear(t.Context(), dir, time.Now().Add(time.Hour))
	want := slices.DeleteFunc(all, func(key string) bool { return key == "ours/"+data })
	if got := left(); len(want) != 3 || !slices.Equal(got, want) {
		t.Errorf("left: %q, want %q", got, want)
	}
	if size, err := b.Size(t.Context(), later); err != nil || size != 4 {
		t.Errorf("%d, %v", size, err)
	}
}
