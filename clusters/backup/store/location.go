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

// Location is where a store is.
type Location struct {
	// Directory, or the Scheme of an object store's URL, and Bucket and Prefix in it. Azure calls a
	// bucket a container.
	Directory              string
	Scheme, Bucket, Prefix string
}

// Locations are the URLs of stores.
const Locations = "file:///DIRECTORY, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://CONTAINER/PREFIX"

// Options say how to reach an object store. Credentials come from where the tools of its vendor take
// them: the environment, files, or the machine.
type Options struct {
	S3 S3
	// GCSEndpoint of Google Cloud Storage, as a URL, where it is not the public one.
	GCSEndpoint string
	// AzureEndpoint is that of the storage account, as a URL; empty where the environment says it.
	AzureEndpoint string
}

// service is a kind of object store.
type service struct {
	open func(ctx context.Context, bucket string, o Options) (*blob.Bucket, error)
	// code says what an error of it means.
	code func(error) gcerrors.ErrorCode
}

// services by the schemes of their URLs.
var services = map[string]service{
	"s3":     {openS3, gcerrors.Code},
	"gs":     {openGCS, gcsCode},
	"azblob": {openAzure, azureCode},
}

// bucketName is what the names of buckets look like, so that one is a single part of a path.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9$][-\w.]*$`)

// IsLocation reports whether the text is the URL of a store, and not the path of a file.
func IsLocation(text string) bool { return strings.Contains(text, "://") }

// ParseLocation reads a URL. It holds no settings: those of gocloud.dev's URLs could send a backup
// anywhere.
func ParseLocation(text string) (Location, error) {
	u, err := url.Parse(text)
	const want = "want " + Locations
	switch {
	case err != nil: // it may hold credentials, and so may the error
		return Location{}, errors.New("that is no URL of a store: " + want)
	case u.User != nil:
		return Location{}, errors.New("a URL of a store holds no credentials; give them in the environment")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return Location{}, errors.New("a URL of a store ends with its path; there are flags for the rest")
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		return Location{Directory: filepath.Clean(u.Path)}, nil
	case services[u.Scheme].open != nil && bucketName.MatchString(u.Host):
		prefix := strings.Trim(u.Path, "/")
		if prefix != "" {
			prefix += "/"
		}
		return Location{Scheme: u.Scheme, Bucket: u.Host, Prefix: prefix}, nil
	}
	return Location{}, errors.New("that is no URL of a store: " + want)
}

// checkEndpoint refuses what is no plain URL, without showing it.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("its endpoint is no URL: want https://HOST[:PORT]")
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errors.New("its endpoint holds more than a URL's host and path; credentials belong into the environment")
	}
	return nil
}

// Open opens the store.
func (l Location) Open(ctx context.Context, o Options) (Bucket, error) {
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
