package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Location is the location of a store.
type Location struct {
	// Directory is the path of a directory. For an object store, it is empty. Scheme, Bucket and Prefix are then the
	// parts of the store's URL. Azure calls a bucket a container.
	Directory              string
	Scheme, Bucket, Prefix string
}

// Locations describes the supported store URLs.
const Locations = "file:///DIRECTORY, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://CONTAINER/PREFIX"

// Options specifies how to connect to an object store. Credentials come from the same sources that the vendor's tools
// use: the environment, files, or the machine.
type Options struct {
	S3 S3
	// GCSEndpoint is the URL of Google Cloud Storage if it is not the public endpoint.
	GCSEndpoint string
	// AzureEndpoint is the URL of the storage account. If it is empty, the URL is derived from the environment.
	AzureEndpoint string
}

// service is a kind of object store.
type service struct {
	open func(ctx context.Context, bucket string, o Options) (*blob.Bucket, error)
	// code maps the service's errors to codes.
	code func(error) gcerrors.ErrorCode
}

// services maps URL schemes to kinds of object stores.
var services = map[string]service{
	"s3":     {openS3, s3Code},
	"gs":     {openGCS, gcsCode},
	"azblob": {openAzure, azureCode},
}

// bucketName matches bucket names that consist of a single path component.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9$][-\w.]*$`)

// IsLocation reports whether text is the URL of a store instead of the path of a file.
func IsLocation(text string) bool { return strings.Contains(text, "://") }

// ErrClaim is returned for volume://CLAIM.
var ErrClaim = errors.New("a claim can be used only in a pod that mounts it, as file:///DIRECTORY")

// ParseLocation parses a store URL. It rejects URLs with parameters, because gocloud.dev's parameters could redirect a
// backup to any destination.
func ParseLocation(text string) (Location, error) {
	if err := checkNoEndpoint(text); err != nil {
		return Location{}, err
	}
	u, err := url.Parse(text)
	const want = "expected " + Locations
	switch {
	case err != nil: // the URL and the error may contain credentials
		return Location{}, errors.New("not a store URL: " + want)
	case u.Scheme == "volume":
		return Location{}, ErrClaim
	case u.User != nil:
		return Location{}, errors.New("a store URL must not contain credentials; set them in the environment")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return Location{}, errors.New("a store URL must not have a query or a fragment; use flags instead")
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		return Location{Directory: filepath.Clean(u.Path)}, nil
	case services[u.Scheme].open != nil && bucketName.MatchString(u.Host):
		prefix := strings.Trim(u.Path, "/")
		if prefix != "" {
			prefix += "/"
		}
		return Location{Scheme: u.Scheme, Bucket: u.Host, Prefix: prefix}, nil
	}
	return Location{}, errors.New("not a store URL: " + want)
}

// endpointFlags maps URL schemes to the flags that set the endpoint.
var endpointFlags = map[string]string{"s3": "--s3-endpoint", "gs": "--gcs-endpoint", "azblob": "--azure-endpoint"}

// checkNoEndpoint refuses the URL of an object store if it contains @, as the locations that status shows may.
// Otherwise, the part after @ would be read as part of the prefix, in the vendor's public store. The error contains
// only the endpoint, account or AWS partition, because the rest of the URL may be credentials.
func checkNoEndpoint(text string) error {
	location, at, has := strings.Cut(text, "@")
	scheme, _, _ := strings.Cut(location, "://")
	scheme = strings.ToLower(scheme) // like url.Parse
	flag := endpointFlags[scheme]
	if !has || flag == "" {
		return nil
	}
	plain, err := ParseLocation(location)
	const instead = "remove @ and everything after it, and use"
	endpoint, account, hasAccount := strings.Cut(at, " of account ")
	switch {
	case err != nil:
		return nil //nolint:nilerr // the caller reports it
	case scheme == "s3" && partition.MatchString(at):
		return fmt.Errorf("the URL contains an AWS partition: %s --s3-region with a region in partition %s", instead,
			at)
	case strings.Contains(endpoint, "://") && checkEndpoint(endpoint) == nil && hasAccount:
		return fmt.Errorf("the URL contains an endpoint: %s %s %s and AZURE_STORAGE_ACCOUNT=%s", instead, flag,
			endpoint, account)
	case strings.Contains(endpoint, "://") && checkEndpoint(endpoint) == nil:
		return fmt.Errorf("the URL contains an endpoint: %s %s %s", instead, flag, endpoint)
	case plain.Prefix == "":
		return nil // credentials, which the caller reports
	}
	return fmt.Errorf("a store URL must not contain @: set the endpoint with %s; in a prefix, write @ as %%40", flag)
}

var partition = regexp.MustCompile(`^aws(-[a-z]+)+$`)

// checkEndpoint returns an error unless endpoint is empty or a plain URL. The error does not contain the endpoint.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("the endpoint is not a URL: use https://HOST[:PORT]")
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errors.New("the endpoint may contain only a host and a path; set credentials in the environment")
	}
	return nil
}

// Open opens the store.
func (l Location) Open(ctx context.Context, o Options) (Bucket, error) {
	if l.Directory != "" {
		if _, err := os.ReadDir(l.Directory); err != nil { // if the directory is missing, its disk may not be mounted
			return nil, fmt.Errorf("open the store: %w; the directory must exist", err)
		}
		return directory{l.Directory}, nil
	}
	kind := services[l.Scheme]
	bucket, err := kind.open(ctx, l.Bucket, o)
	if err != nil {
		return nil, fmt.Errorf("open the store in bucket %s: %w", l.Bucket, discreet{err})
	}
	b := objects{bucket: bucket, prefix: l.Prefix, code: kind.code}
	if l.Scheme == "s3" {
		b.s3, b.named = o.S3, l.Bucket
	}
	return b, nil
}
