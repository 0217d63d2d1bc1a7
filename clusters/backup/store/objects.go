package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/internal/printable"
)

// objects stores backups in a bucket of an object store.
type objects struct {
	bucket *blob.Bucket
	// prefix is the prefix of all names. It is empty or ends in a slash.
	prefix string
	// code maps an error to a code.
	code func(error) gcerrors.ErrorCode
	// s3 contains the settings of an S3 store, and named is the name of its bucket. Both are empty for other kinds of
	// stores.
	s3    S3
	named string
}

// Objects are uploaded in parts of partSize bytes, at most two at a time, to limit memory use. S3 allows 10,000 parts,
// which is about 80 GiB.
const (
	partSize    = 8 << 20
	partsAtOnce = 2
)

// Create implements Bucket.
func (o objects) Create(ctx context.Context, name string, content io.Reader) error {
	if o.named != "" && path.Ext(name) != ".json" {
		o.clear(ctx, path.Dir(name)+"/", time.Now().Add(-abandoned))
	}
	return o.write(ctx, name, content, true)
}

// Replace implements Bucket.
func (o objects) Replace(ctx context.Context, name string, content io.Reader) error {
	return o.write(ctx, name, content, false)
}

// write uploads content with gocloud.dev's Upload, because gocloud.dev's Writer for Azure panics if an upload fails. If
// the reader fails, Upload stores the data read so far unless the context is canceled.
func (o objects) write(ctx context.Context, name string, content io.Reader, onlyNew bool) (err error) {
	defer catch("store "+name, &err)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from := &canceler{Reader: disk.Until(ctx, content), cancel: cancel}
	options := &blob.WriterOptions{
		IfNotExist: onlyNew, BufferSize: partSize, MaxConcurrency: partsAtOnce,
		ContentType: "application/octet-stream", DisableContentTypeDetection: true,
	}
	var until time.Time
	if onlyNew { // objects written with Replace must remain deletable
		until = o.s3.lockedUntil(time.Now())
	}
	if !until.IsZero() {
		options.BeforeWrite = lock(until)
	}
	err = o.bucket.Upload(ctx, o.prefix+name, from, options)
	switch {
	case from.err != nil:
		return fmt.Errorf("store %s: %w", name, from.err)
	case err == nil && onlyNew:
		return o.confirm(ctx, name, until)
	case err == nil:
		return nil
	}
	err = fmt.Errorf("store %s: %w", name, o.plain(ctx, err))
	if onlyNew && !errors.Is(err, ErrExists) {
		// The object may exist anyway, if a request stored it and the response was lost. The repeated request is then
		// rejected, or fails because the upload is no longer known.
		if _, missing := o.Size(ctx, name); missing == nil {
			return fmt.Errorf("%w: %w", ErrExists, err)
		}
	}
	return err
}

// confirm returns an error if a created object does not have a requested property.
func (o objects) confirm(ctx context.Context, name string, until time.Time) error {
	if until.IsZero() && o.s3.KMSKey == "" {
		return nil
	}
	attributes, err := o.bucket.Attributes(ctx, o.prefix+name)
	if err != nil {
		return fmt.Errorf("inspect %s: %w", name, o.plain(ctx, err))
	}
	if err := o.s3.confirm(attributes, until); err != nil {
		return fmt.Errorf("%s is stored, but not as requested: %w", name, err)
	}
	return nil
}

func (o objects) lockedUntil(at time.Time) time.Time { return o.s3.lockedUntil(at) }

// canceler cancels the upload that reads from it if reading fails.
type canceler struct {
	io.Reader
	cancel context.CancelFunc
	err    error
}

func (c *canceler) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
		c.cancel()
	}
	return n, err
}

// errNoStore is returned for a response that lacks parts that every response of a store contains.
var errNoStore = errors.New("the response is not from a store of this type; is the endpoint correct?")

// catch converts a panic in the library to an error. The library panics if a response lacks something that it expects.
func catch(what string, err *error) {
	switch value := recover().(type) {
	case nil:
	case runtime.Error:
		*err = fmt.Errorf("%s: %w (%w)", what, errNoStore, value)
	default:
		panic(value)
	}
}

// Open implements Bucket.
func (o objects) Open(ctx context.Context, name string) (content io.ReadCloser, err error) {
	defer catch("open "+name, &err)
	r, err := o.bucket.NewReader(readingContent(ctx), o.prefix+name, nil)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, o.plain(ctx, err))
	}
	return r, nil
}

// Size implements Bucket.
func (o objects) Size(ctx context.Context, name string) (size int64, err error) {
	defer catch("inspect "+name, &err)
	attributes, err := o.bucket.Attributes(ctx, o.prefix+name)
	if err != nil {
		return 0, fmt.Errorf("inspect %s: %w", name, o.plain(ctx, err))
	}
	return attributes.Size, nil
}

// List implements Bucket.
func (o objects) List(ctx context.Context, prefix string) (names []string, err error) {
	defer catch(fmt.Sprintf("list objects with prefix %q", o.prefix+prefix), &err)
	watched := watchProgress(ctx)
	defer watched.stop()
	found := map[string]bool{}
	all := o.bucket.List(&blob.ListOptions{Prefix: o.prefix + prefix})
	for {
		object, err := all.Next(watched)
		if errors.Is(err, io.EOF) {
			return slices.Sorted(maps.Keys(found)), nil
		}
		if err != nil {
			err = watched.explain(err)
			return nil, fmt.Errorf("list objects with prefix %q: %w", o.prefix+prefix, o.plain(ctx, err))
		}
		if name, under := strings.CutPrefix(object.Key, o.prefix); under && !object.IsDir {
			watched.listed(!found[name])
			found[name] = true
		}
	}
}

// Delete implements Bucket.
func (o objects) Delete(ctx context.Context, name string) (err error) {
	defer catch("delete "+name, &err)
	if err := o.bucket.Delete(ctx, o.prefix+name); err != nil {
		return fmt.Errorf("delete %s: %w", name, o.plain(ctx, err))
	}
	return nil
}

// Close implements Bucket.
func (o objects) Close() error { return o.bucket.Close() }

// plain maps object store errors to bucket errors.
func (o objects) plain(ctx context.Context, err error) error {
	switch o.code(err) {
	case gcerrors.NotFound:
		if o.gone(ctx) {
			return fmt.Errorf("%w: %w", errGone, discreet{err})
		}
		return fmt.Errorf("%w (%w)", ErrNotFound, discreet{err})
	case gcerrors.FailedPrecondition, gcerrors.AlreadyExists:
		return fmt.Errorf("%w (%w)", ErrExists, discreet{err})
	case gcerrors.PermissionDenied:
		return fmt.Errorf("%w: %w", ErrHeld, discreet{err})
	default:
		return discreet{err}
	}
}

// gone reports whether the bucket itself is missing. To requests for an object, most stores respond in the same way
// whether the object or the bucket is missing. Only a list request shows the difference.
func (o objects) gone(ctx context.Context) bool {
	watched := watchProgress(ctx)
	defer watched.stop()
	_, _, err := o.bucket.ListPage(watched, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: o.prefix})
	return err != nil && (o.code(err) == gcerrors.NotFound || errors.Is(err, errNoStore))
}

// meaning returns the code for an HTTP status. It is used if the response does not contain anything more specific.
func meaning(status int) gcerrors.ErrorCode {
	switch status {
	case http.StatusNotFound:
		return gcerrors.NotFound
	case http.StatusPreconditionFailed:
		return gcerrors.FailedPrecondition
	case http.StatusForbidden:
		return gcerrors.PermissionDenied
	}
	return gcerrors.Unknown
}

// discreet is an error with untrusted text. It prints as one printable line, without URL queries, because they may
// contain Azure SAS tokens or Google upload keys.
type discreet struct{ error }

var query = regexp.MustCompile(`(https?://[^\s"?]*)\?[^\s"]*`)

func (d discreet) Error() string {
	var azure *azcore.ResponseError
	var google *googleapi.Error
	var aws smithy.APIError
	var unsent *smithyhttp.RequestSendError
	text := d.error.Error()
	switch { // the text of these errors is very long
	case errors.As(d.error, &azure):
		text = fmt.Sprintf("Azure returned %d %s", azure.StatusCode, azure.ErrorCode)
	case errors.As(d.error, &google):
		text = fmt.Sprintf("Google returned %d %s", google.Code, google.Message)
	case errors.As(d.error, &aws):
		text = awsText(d.error, aws)
	case errors.As(d.error, &unsent):
		text = unsent.Err.Error()
	}
	// The library puts the steps of a request before the reason why it lacks credentials.
	_, reason, _ := strings.Cut(text, errNoCredentials.Error())
	if errors.Is(d.error, errNoCredentials) {
		text = errNoCredentials.Error() + ": " + cmp.Or(strings.TrimPrefix(reason, ": "), text)
	}
	return printable.Line(strings.Join(strings.Fields(query.ReplaceAllString(text, "$1")), " "))
}

func (d discreet) Unwrap() error { return d.error }
