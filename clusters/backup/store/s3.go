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
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"
)

// S3 specifies how to connect to an S3 store.
type S3 struct {
	// Endpoint is the URL of a store other than AWS. If Region is empty, the region comes from the environment.
	Endpoint, Region string
	// PathStyle puts the bucket into the URL's path instead of the host name.
	PathStyle bool
	// CA contains the store's certificate authority, in PEM. It is trusted in addition to the system's authorities.
	CA []byte
	// KMSKey is the ID, ARN or alias of the AWS KMS key with which to encrypt all stored objects. If it is empty, the
	// bucket's setting applies.
	KMSKey string
	// LockFor is how long created objects cannot be deleted or replaced. If it is zero, the bucket's setting applies.
	LockFor time.Duration
}

func openS3(ctx context.Context, bucket string, o Options) (*blob.Bucket, error) {
	client, err := o.S3.client(ctx)
	if err != nil {
		return nil, err
	}
	options := &s3blob.Options{
		RequestChecksumCalculation: client.Options().RequestChecksumCalculation, // also for parts
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
	settings, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	return s3.NewFromConfig(settings, func(s *s3.Options) {
		s.UsePathStyle = o.PathStyle
		s.HTTPClient = limited{s.HTTPClient}
		// If several requests write the same name, a store may ask one of them to retry. By the time of the retry, the
		// object exists.
		s.Retryer = retry.AddWithErrorCodes(s.Retryer, "ConditionalRequestConflict")
		s.APIOptions = append(s.APIOptions, checkLists)
		if o.Endpoint != "" {
			s.BaseEndpoint = aws.String(o.Endpoint)
			// Only AWS supports checksums in trailers. All stores support checksums in headers, and require them in
			// buckets with default object locks.
			s.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			s.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
			s.APIOptions = append(s.APIOptions, smithyhttp.AddContentChecksumMiddleware)
		}
	}), nil
}

// load returns the settings of the client library: those in o, and the library's defaults for all others.
func (o S3) load(ctx context.Context) (aws.Config, error) {
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
			return aws.Config{}, errors.New("the store's CA does not contain a PEM certificate")
		}
		options = append(options, config.WithHTTPClient(awshttp.NewBuildableClient().
			WithTransportOptions(func(t *http.Transport) {
				t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
			})))
	}
	settings, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, err
	}
	if settings.Region == "" {
		settings.Region = "us-east-1" // the library requires a region, and most other stores accept this one
	}
	if provider := settings.Credentials; provider != nil {
		settings.Credentials = aws.NewCredentialsCache(aws.CredentialsProviderFunc(
			func(ctx context.Context) (aws.Credentials, error) {
				credentials, err := provider.Retrieve(ctx)
				if err != nil {
					err = fmt.Errorf("%w: %w", errNoCredentials, err)
				}
				return credentials, err
			}))
	}
	return settings, nil
}

// errNoCredentials is returned if no source provides credentials. The library names only the last source that it tried,
// which is the machine's metadata service.
var errNoCredentials = errors.New("no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or declare " +
	"secretName or serviceAccountName")

// s3Code maps an S3 error to a code. gocloud.dev's own mapping also evaluates responses of the service that issues
// credentials, which are not about the store.
func s3Code(err error) gcerrors.ErrorCode {
	if errors.Is(err, errNoCredentials) {
		return gcerrors.Unknown
	}
	return gcerrors.Code(err)
}

// awsText returns the text of an error returned by S3, or by the service that issues the credentials for it. The
// request ID is at the end, because long texts are truncated.
func awsText(err error, returned smithy.APIError) string {
	service, status, id := "S3", "", ""
	var operation *smithy.OperationError
	for next := err; errors.As(next, &operation); next = operation.Err { // the innermost operation failed
		service = operation.ServiceID
	}
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		status = fmt.Sprintf("%d ", response.HTTPStatusCode())
		if response.RequestID != "" {
			id = fmt.Sprintf(" (request ID %s)", response.RequestID)
		}
	}
	return fmt.Sprintf("%s returned %s%s: %s%s", service, status, returned.ErrorCode(), returned.ErrorMessage(), id)
}

// errCutOff is returned for a truncated list.
var errCutOff = errors.New("the store truncated the list without returning a continuation token")

// checkLists checks every page of a list. Without it, the libraries treat any web page as an empty list, and the first
// page from a store that supports only the older list API as a complete list.
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

// clearTimeout is the time limit for clear. A backup does not depend on the success of clear.
const clearTimeout = time.Minute

// clear aborts uploads of data to a directory that were started before the given time. Such uploads were probably
// abandoned, for example by killed processes. The parts of each upload can take up as much space as a backup, and do
// not appear in lists. If the permissions or the store do not allow clear to abort uploads, the bucket's own rules must
// remove them.
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

// lockedUntil returns the time until which an object created at the given time is locked, or zero if it is not locked.
func (o S3) lockedUntil(at time.Time) time.Time {
	if o.LockFor <= 0 {
		return time.Time{}
	}
	return at.UTC().Add(o.LockFor).Truncate(time.Second)
}

// lock returns a function that locks an upload. The lock cannot be removed, even with full permissions.
func lock(until time.Time) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var upload *transfermanager.UploadObjectInput
		if !as(&upload) {
			return errors.New("it cannot be locked: the library uses a different upload method")
		}
		upload.ObjectLockMode, upload.ObjectLockRetainUntilDate = transfertypes.ObjectLockModeCompliance, &until
		return nil
	}
}

// confirm returns an error if an object lacks a requested property. This must be checked because some stores ignore
// unknown settings.
func (o S3) confirm(a *blob.Attributes, until time.Time) error {
	var head s3.HeadObjectOutput
	if !a.As(&head) {
		return errors.New("its lock and key are unknown")
	}
	if !until.IsZero() {
		locked := head.ObjectLockRetainUntilDate
		if head.ObjectLockMode != types.ObjectLockModeCompliance || locked == nil || locked.Before(until) {
			return fmt.Errorf("the store does not report that the object is locked until %s: the bucket needs object "+
				"lock, and the credentials need s3:GetObjectRetention", until.Format(time.RFC3339))
		}
	}
	if o.KMSKey == "" {
		return nil
	}
	if head.ServerSideEncryption != types.ServerSideEncryptionAwsKms {
		return errors.New("the store does not report that it is encrypted with a KMS key")
	}
	if key := aws.ToString(head.SSEKMSKeyId); !o.isKey(key) {
		return fmt.Errorf("it is encrypted with a different KMS key, %.100q", key)
	}
	return nil
}

// isKey reports whether the key that the store reports may be the requested key. The key behind an alias is unknown.
func (o S3) isKey(key string) bool {
	if strings.HasPrefix(o.KMSKey, "alias/") || strings.Contains(o.KMSKey, ":alias/") {
		return true
	}
	id := func(name string) string { return name[strings.LastIndex(name, "/")+1:] }
	return id(key) == id(o.KMSKey)
}
