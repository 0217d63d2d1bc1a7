package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
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
}

func openS3(ctx context.Context, bucket string, o Options) (*blob.Bucket, error) {
	client, err := o.S3.client(ctx)
	if err != nil {
		return nil, err
	}
	return s3blob.OpenBucket(ctx, client, bucket, &s3blob.Options{
		RequestChecksumCalculation: client.Options().RequestChecksumCalculation, // for parts too
	})
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
