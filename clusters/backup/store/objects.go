package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// objects keeps backups in the bucket of an object store.
type objects struct {
	bucket *blob.Bucket
	// prefix of all names, empty or with a slash at its end.
	prefix string
}

// An object is uploaded in parts of this size, two at a time, which bounds the memory that it takes.
// 10,000 parts are allowed: 80 GiB.
const (
	partSize    = 8 << 20
	partsAtOnce = 2
)

// Create implements Bucket.
func (o objects) Create(ctx context.Context, name string, content io.Reader) error {
	return o.write(ctx, name, content, true)
}

// Replace implements Bucket.
func (o objects) Replace(ctx context.Context, name string, content io.Reader) error {
	return o.write(ctx, name, content, false)
}

func (o objects) write(ctx context.Context, name string, content io.Reader, onlyNew bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := o.bucket.NewWriter(ctx, o.prefix+name, &blob.WriterOptions{
		IfNotExist: onlyNew, BufferSize: partSize, MaxConcurrency: partsAtOnce,
		ContentType: "application/octet-stream", DisableContentTypeDetection: true,
	})
	if err != nil {
		return fmt.Errorf("store %s: %w", name, o.plain(err))
	}
	_, err = io.Copy(w, content)
	if err != nil {
		cancel() // which is what makes Close leave nothing behind
		w.Close()
		return fmt.Errorf("store %s: %w", name, o.plain(err))
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("store %s: %w", name, o.plain(err))
	}
	return nil
}

// Open implements Bucket.
func (o objects) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := o.bucket.NewReader(ctx, o.prefix+name, nil)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, o.plain(err))
	}
	return r, nil
}

// Size implements Bucket.
func (o objects) Size(ctx context.Context, name string) (int64, error) {
	attributes, err := o.bucket.Attributes(ctx, o.prefix+name)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", name, o.plain(err))
	}
	return attributes.Size, nil
}

// List implements Bucket.
func (o objects) List(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	all := o.bucket.List(&blob.ListOptions{Prefix: o.prefix + prefix})
	for {
		object, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
		if err != nil {
			return nil, fmt.Errorf("list what begins with %q: %w", o.prefix+prefix, o.plain(err))
		}
		if name, under := strings.CutPrefix(object.Key, o.prefix); under && !object.IsDir {
			names = append(names, name)
		}
	}
}

// Delete implements Bucket.
func (o objects) Delete(ctx context.Context, name string) error {
	if err := o.bucket.Delete(ctx, o.prefix+name); err != nil {
		return fmt.Errorf("delete %s: %w", name, o.plain(err))
	}
	return nil
}

// Close implements Bucket.
func (o objects) Close() error { return o.bucket.Close() }

// plain says in a bucket's words what an object store said.
func (o objects) plain(err error) error {
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return fmt.Errorf("%w (%w)", ErrNotFound, err)
	case gcerrors.FailedPrecondition, gcerrors.AlreadyExists:
		return ErrExists
	case gcerrors.PermissionDenied:
		return fmt.Errorf("%w: %w", ErrHeld, err)
	default:
		return err
	}
}
