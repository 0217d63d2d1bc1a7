package store

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// gcsAttempts is how often a request is made to Google Cloud Storage; its library would go on forever.
const gcsAttempts = 5

// openGCS opens a bucket of Google Cloud Storage with the application default credentials, or an
// emulator at STORAGE_EMULATOR_HOST without any.
func openGCS(ctx context.Context, bucket string, o Options) (*blob.Bucket, error) {
	options := []option.ClientOption{option.WithScopes(storage.ScopeReadWrite)}
	if o.GCSEndpoint != "" {
		if err := checkEndpoint(o.GCSEndpoint); err != nil {
			return nil, err
		}
		u, err := url.Parse(o.GCSEndpoint)
		if err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") != "" { // what is sent there is a token
			return nil, errors.New("its endpoint is not https://HOST[:PORT]")
		}
		options = append(options, option.WithEndpoint("https://"+u.Host+"/storage/v1/"))
	}
	client, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	// Whatever is asked here may be asked twice.
	client.SetRetry(storage.WithPolicy(storage.RetryAlways), storage.WithMaxAttempts(gcsAttempts))
	return gcsblob.OpenBucket(ctx, nil, bucket, &gcsblob.Options{Client: client})
}

// gcsCode says what an error of Google Cloud Storage means. gocloud.dev takes one who is refused for
// one who asked for something that is not there.
func gcsCode(err error) gcerrors.ErrorCode {
	var answer *googleapi.Error
	switch {
	case errors.Is(err, storage.ErrObjectNotExist), errors.Is(err, storage.ErrBucketNotExist):
		return gcerrors.NotFound
	case !errors.As(err, &answer):
		return gcerrors.Unknown
	}
	return meaning(answer.Code)
}
