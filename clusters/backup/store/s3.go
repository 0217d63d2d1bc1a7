package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	transfertypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// S3 is how to reach an S3 store.
type S3 struct {
	// Endpoint of a store that is not AWS's, as a URL; Region is empty where the environment says it.
	Endpoint, Region string
	// PathStyle puts the bucket into the path of URLs, not into the host name.
	PathStyle bool
	// CA that signs the store's certificate, in PEM, besides those that the system trusts.
	CA []byte
	// KMSKey is the key of AWS KMS that all that is stored is encrypted with, by its ID, ARN or alias; the bucket
	// decides where it is empty.
	KMSKey string
	// LockFor is for how long nobody can delete or replace what was created; zero, unless the bucket says more.
	LockFor time.Duration
}

func openS3(ctx context.Context, bucket string, o Options) (*blob.Bucket, error) {
	client, err := o.S3.client(ctx)
	if err != nil {
		return nil, err
	}
	options := &s3blob.Options{
		RequestChecksumCalculation: client.Options().RequestChecksumCalculation, // for parts too
	}
	if o.S3.KMSKey != "" {
		options.EncryptionType, options.KMSEncryptionID = types.ServerSideEncryptionAwsKms, o.S3.KMSKey
	}
	return s3blob.OpenBucket(ctx, client, bucket, options)
}

func (o S3) client(ctx context.Context) (*s3.Client, error) {
	if err := checkEndpoint(o.Endpoint); err != nil {
		return nil, err
	}
	options := []func(*config.LoadOptions) error{}
	if o.Region != "" {
		options = append(options, config.WithRegion(o.Region))
	}
	if len(o.CA) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("the CA of the store holds no certificate in PEM")
		}
		options = append(options, config.WithHTTPClient(awshttp.NewBuildableClient().
			WithTransportOptions(func(t *http.Transport) {
				t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
			})))
	}
	settings, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, err
	}
	if settings.Region == "" {
		settings.Region = "us-east-1" // stores other than AWS's ask for one, and do not look at it
	}
	return s3.NewFromConfig(settings, func(s *s3.Options) {
		s.UsePathStyle = o.PathStyle
		// A store may have one of several ask again that want one name at a time; the others exist by then.
		s.Retryer = retry.AddWithErrorCodes(s.Retryer, "ConditionalRequestConflict")
		s.APIOptions = append(s.APIOptions, checkLists)
		if o.Endpoint != "" {
			s.BaseEndpoint = aws.String(o.Endpoint)
			// Checksums in trailers are AWS's alone; all stores know one in the head, without which nothing
			// may be stored where objects are locked by default.
			s.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			s.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
			s.APIOptions = append(s.APIOptions, smithyhttp.AddContentChecksumMiddleware)
		}
	}), nil
}

// errCutOff is what is not all of a list.
var errCutOff = errors.New("the store cuts the list off, and does not say how to ask for the rest")

// checkLists has each part of a list looked at. The libraries take any page of the web for an empty list, and one of a
// store that knows the older kind of lists alone for a whole one.
func checkLists(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("CheckLists", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleInitialize(ctx, in)
		if answer, isList := out.Result.(*s3.ListObjectsV2Output); err == nil && isList {
			err = checkList(answer)
		}
		return out, metadata, err
	}), middleware.Before)
}

func checkList(answer *s3.ListObjectsV2Output) error {
	switch {
	case answer.IsTruncated == nil:
		return errNoStore
	case *answer.IsTruncated && aws.ToString(answer.NextContinuationToken) == "":
		return errCutOff
	}
	return nil
}

// clearTimeout bounds what is not needed for a backup.
const clearTimeout = time.Minute

// clear aborts uploads of data in a directory that were begun before a time, as by those who were killed since: their
// parts take as much room as a backup each, and no list has them. Whoever may not, or a store that cannot, leaves that
// to the bucket.
func (o objects) clear(ctx context.Context, dir string, before time.Time) {
	var client *s3.Client
	if !o.bucket.As(&client) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clearTimeout)
	defer cancel()
	found, err := client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{
		Bucket: &o.named, Prefix: aws.String(o.prefix + dir),
	})
	if err != nil {
		return
	}
	for _, upload := range found.Uploads {
		name, under := strings.CutPrefix(aws.ToString(upload.Key), o.prefix)
		begun := upload.Initiated
		if !under || !isData(name) || begun == nil || !begun.Before(before) {
			continue
		}
		_, _ = client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &o.named, Key: upload.Key, UploadId: upload.UploadId,
		})
	}
}

// lockedUntil is until when what is created at a time is locked; zero if it is not.
func (o S3) lockedUntil(at time.Time) time.Time {
	if o.LockFor <= 0 {
		return time.Time{}
	}
	return at.UTC().Add(o.LockFor).Truncate(time.Second)
}

// lock has an upload locked, such that whoever has all rights cannot take it back.
func lock(until time.Time) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var upload *transfermanager.UploadObjectInput
		if !as(&upload) {
			return errors.New("it cannot be locked: the library uploads in another way")
		}
		upload.ObjectLockMode, upload.ObjectLockRetainUntilDate = transfertypes.ObjectLockModeCompliance, &until
		return nil
	}
}

// confirm reports what was asked for and is not so of an object: some stores pass over what they do not know.
func (o S3) confirm(a *blob.Attributes, until time.Time) error {
	var head s3.HeadObjectOutput
	if !a.As(&head) {
		return errors.New("nothing is known of its lock and its key")
	}
	if !until.IsZero() {
		locked := head.ObjectLockRetainUntilDate
		if head.ObjectLockMode != types.ObjectLockModeCompliance || locked == nil || locked.Before(until) {
			return fmt.Errorf("the store does not say that it is locked until %s: the bucket has to have object "+
				"lock, and the credentials s3:GetObjectRetention", until.Format(time.RFC3339))
		}
	}
	if o.KMSKey == "" {
		return nil
	}
	if head.ServerSideEncryption != types.ServerSideEncryptionAwsKms {
		return errors.New("the store does not say that it is encrypted with a key of KMS")
	}
	if key := aws.ToString(head.SSEKMSKeyId); !o.isKey(key) {
		return fmt.Errorf("it is encrypted with another key of KMS, %.100q", key)
	}
	return nil
}

// isKey reports whether the key that the store names may be the one that was asked for. Which one an alias stands for
// is not known here.
func (o S3) isKey(key string) bool {
	if strings.HasPrefix(o.KMSKey, "alias/") || strings.Contains(o.KMSKey, ":alias/") {
		return true
	}
	id := func(name string) string { return name[strings.LastIndex(name, "/")+1:] }
	return id(key) == id(o.KMSKey)
}
