package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/s3blob"
)

// Location is where a store is: file:///DIRECTORY, or s3://BUCKET/PREFIX.
type Location struct {
	// Directory, or Bucket and Prefix of an S3 store.
	Directory      string
	Bucket, Prefix string
}

// S3 is how to reach an S3 store. Credentials come from where AWS's own tools take them: the
// environment, files, or the machine.
type S3 struct {
	// Endpoint of a store that is not AWS's, as a URL; Region is empty where the environment says it.
	Endpoint, Region string
	// PathStyle puts the bucket into the path of URLs, not into the host name.
	PathStyle bool
	// CA that signs the store's certificate, in PEM, besides those that the system trusts.
	CA []byte
}

// IsLocation reports whether the text is the URL of a store, and not the path of a file.
func IsLocation(text string) bool { return strings.Contains(text, "://") }

// ParseLocation reads a URL. It holds no settings: those of gocloud.dev's URLs could send a backup
// anywhere.
func ParseLocation(text string) (Location, error) {
	u, err := url.Parse(text)
	const want = "want file:///DIRECTORY or s3://BUCKET/PREFIX"
	switch {
	case err != nil: // it may hold credentials, and so may the error
		return Location{}, errors.New("that is no URL of a store: " + want)
	case u.User != nil:
		return Location{}, errors.New("a URL of a store holds no credentials; give them in the environment")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return Location{}, errors.New("a URL of a store ends with its path; there are flags for the rest")
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		return Location{Directory: filepath.Clean(u.Path)}, nil
	case u.Scheme == "s3" && u.Host != "" && u.Port() == "":
		prefix := strings.Trim(u.Path, "/")
		if prefix != "" {
			prefix += "/"
		}
		return Location{Bucket: u.Host, Prefix: prefix}, nil
	}
	return Location{}, errors.New("that is no URL of a store: " + want)
}

// checkEndpoint refuses what is no plain URL, without showing it.
func (o S3) checkEndpoint() error {
	if o.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("its endpoint is no URL: want https://HOST[:PORT]")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("its endpoint holds more than a URL's host and path; credentials belong into the environment")
	}
	return nil
}

// Open opens the store.
func (l Location) Open(ctx context.Context, o S3) (Bucket, error) {
	if l.Directory != "" {
		if _, err := os.ReadDir(l.Directory); err != nil { // one that is not there may be a disk that is not mounted
			return nil, fmt.Errorf("open the store: %w; it has to exist", err)
		}
		root, err := filepath.EvalSymlinks(l.Directory) // what is walked does not begin with a link
		if err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
		return directory{root}, nil
	}
	client, err := o.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the store in bucket %s: %w", l.Bucket, err)
	}
	bucket, err := s3blob.OpenBucket(ctx, client, l.Bucket, nil)
	if err != nil {
		return nil, fmt.Errorf("open the store in bucket %s: %w", l.Bucket, err)
	}
	return objects{bucket, l.Prefix}, nil
}

func (o S3) client(ctx context.Context) (*s3.Client, error) {
	if err := o.checkEndpoint(); err != nil {
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
		if o.Endpoint != "" {
			s.BaseEndpoint = aws.String(o.Endpoint)
			// Checksums in trailers are AWS's alone; what is stored has one of ours.
			s.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			s.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	}), nil
}
