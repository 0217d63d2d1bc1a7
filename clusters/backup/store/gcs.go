package store

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	htransport "google.golang.org/api/transport/http"
)

// gcsAttempts is the maximum number of attempts for a request to Google Cloud Storage. By default, the library would
// retry forever.
const gcsAttempts = 5

// openGCS opens a bucket in Google Cloud Storage with the application default credentials. If STORAGE_EMULATOR_HOST is
// set, it opens a bucket in that emulator without credentials.
func openGCS(ctx context.Context, bucket string, o Options) (*blob.Bucket, error) {
	options := []option.ClientOption{option.WithScopes(storage.ScopeReadWrite)}
	if o.GCSEndpoint != "" {
		if err := checkEndpoint(o.GCSEndpoint); err != nil {
			return nil, err
		}
		u, err := url.Parse(o.GCSEndpoint)
		if err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") != "" { // a token is sent there
			return nil, errors.New("the endpoint must be https://HOST[:PORT]")
		}
		options = append(options, option.WithEndpoint("https://"+u.Host+"/storage/v1/"))
	}
	limited, err := gcsHTTPClient(ctx, options)
	if err != nil {
		return nil, err
	}
	client, err := storage.NewClient(ctx, append(options, option.WithHTTPClient(limited))...)
	if err != nil {
		return nil, err
	}
	// All requests that this package sends can safely be repeated.
	client.SetRetry(storage.WithPolicy(storage.RetryAlways), storage.WithMaxAttempts(gcsAttempts))
	return gcsblob.OpenBucket(ctx, nil, bucket, &gcsblob.Options{Client: client})
}

// gcsHTTPClient returns the same HTTP client that the library would create, but with limited responses.
func gcsHTTPClient(ctx context.Context, options []option.ClientOption) (*http.Client, error) {
	options = append([]option.ClientOption{
		internaloption.WithDefaultEndpointTemplate("https://storage.UNIVERSE_DOMAIN/storage/v1/"),
		internaloption.WithDefaultMTLSEndpoint("https://storage.mtls.googleapis.com/storage/v1/"),
		internaloption.WithDefaultUniverseDomain("googleapis.com"),
		internaloption.EnableNewAuthLibrary(),
	}, options...)
	if os.Getenv("STORAGE_EMULATOR_HOST") != "" {
		options = []option.ClientOption{option.WithoutAuthentication(), internaloption.SkipDialSettingsValidation()}
	}
	client, _, err := htransport.NewClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	client.Transport = limitedTransport{client.Transport}
	return client, nil
}

// gcsCode maps a Google Cloud Storage error to a code. gocloud.dev's own mapping treats a denied request as not found.
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
