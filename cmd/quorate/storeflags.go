package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
)

// storeFlags specify how to reach a backup store.
type storeFlags struct {
	store.Options
	caFile string
}

func (f *storeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.S3.Endpoint, "s3-endpoint", "", "URL of an S3 store other than AWS")
	c.Flags().StringVar(&f.S3.Region, "s3-region", "", "region of the bucket (default: from the environment)")
	c.Flags().BoolVar(&f.S3.PathStyle, "s3-path-style", false,
		"put the bucket in the URL path, as many stores other than AWS require")
	c.Flags().StringVar(&f.caFile, "s3-ca-file", "",
		"PEM file with the CA that signed the certificate of --s3-endpoint")
	c.Flags().StringVar(&f.S3.KMSKey, "s3-kms-key", "",
		"ID, ARN or alias of the AWS KMS key that encrypts stored data (default: the bucket's setting)")
	c.Flags().StringVar(&f.GCSEndpoint, "gcs-endpoint", "",
		"URL of Google Cloud Storage, if not the public endpoint, such as a regional endpoint")
	c.Flags().StringVar(&f.AzureEndpoint, "azure-endpoint", "",
		"URL of the Azure storage account (default https://$AZURE_STORAGE_ACCOUNT.blob.core.windows.net)")
}

// addLock adds the lock flag to commands that store backups.
func (f *storeFlags) addLock(c *cobra.Command) {
	c.Flags().DurationVar(&f.S3.LockFor, "s3-lock-for", 0,
		"how long the bucket's object lock protects the backup from deletion, in mode COMPLIANCE (up to 8760h)")
}

// maxLock is the maximum lock time. It is limited because a lock cannot be revoked.
const maxLock = 365 * 24 * time.Hour

// check rejects options that the backup destination does not support.
func (f *storeFlags) check(to string) error {
	switch {
	case f.S3.LockFor < 0 || f.S3.LockFor > maxLock:
		return usageError{errors.New("--s3-lock-for: must be at most 8760h; a bucket can have a longer default")}
	case (f.S3.LockFor > 0 || f.S3.KMSKey != "") && !strings.HasPrefix(to, "s3://"):
		return usageError{errors.New("--s3-kms-key, --s3-lock-for: only supported for s3://BUCKET")}
	}
	return nil
}

// endpoint returns the endpoint of the store at a URL, or "" for the vendor's default. For AWS, it returns the
// partition, or "" for the public partition.
func (f *storeFlags) endpoint(url string) string {
	scheme, _, _ := strings.Cut(url, "://")
	if scheme == "s3" && f.S3.Endpoint == "" {
		partition, _ := v1alpha1.S3Destination{Region: f.S3.Region}.Partition()
		return partition
	}
	return map[string]string{"s3": f.S3.Endpoint, "gs": f.GCSEndpoint, "azblob": f.AzureEndpoint}[scheme]
}

// open opens the store at a URL.
func (f *storeFlags) open(ctx context.Context, flag, url string) (store.Bucket, error) {
	location, err := parseLocation(flag, url)
	if err != nil {
		return nil, err
	}
	if err := f.check(url); err != nil {
		return nil, err
	}
	if f.caFile != "" {
		if f.S3.CA, err = os.ReadFile(f.caFile); err != nil {
			return nil, usageError{fmt.Errorf("--s3-ca-file: %w", err)}
		}
	}
	return location.Open(ctx, f.Options)
}

// parseLocation parses the store URL that was passed with a flag, which is from or to.
func parseLocation(flag, url string) (store.Location, error) {
	location, err := store.ParseLocation(url)
	switch {
	case err == nil:
		return location, nil
	case errors.Is(err, store.ErrClaim) && flag == "to":
		err = fmt.Errorf("%w; use a directory on this machine, and copy its contents to the root of the volume", err)
	case errors.Is(err, store.ErrClaim):
		err = fmt.Errorf("%w: see \"List the backups in a volume\" in docs/how-to/recover-from-a-disaster.md", err)
	}
	return store.Location{}, usageError{fmt.Errorf("--%s: %w", flag, err)}
}

// encodingFlags specify how a backup is stored.
type encodingFlags struct {
	compress       string
	recipients     []string
	recipientsFile string
}

func (f *encodingFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.compress, "compress", "",
		"zstd or none (default zstd; none for a file whose name ends in .db)")
	c.Flags().StringArrayVar(&f.recipients, "recipient", nil,
		"encrypt to this age recipient, such as age1…; repeatable")
	c.Flags().StringVar(&f.recipientsFile, "recipients-file", "",
		"encrypt to the age recipients in this file, one per line")
}

// encoding returns the encoding of a backup for the given destination.
func (f *encodingFlags) encoding(to string) (backup.Encoding, error) {
	if f.compress != "" {
		if err := oneOf("compress", f.compress, "zstd", "none"); err != nil {
			return backup.Encoding{}, err
		}
	}
	plainFile := f.compress == "" && !store.IsLocation(to) && strings.HasSuffix(to, ".db")
	e := backup.Encoding{Compress: f.compress != "none" && !plainFile}
	text := strings.Join(f.recipients, "\n")
	if f.recipientsFile != "" {
		file, err := os.ReadFile(f.recipientsFile)
		if err != nil {
			return backup.Encoding{}, usageError{fmt.Errorf("--recipients-file: %w", err)}
		}
		text += "\n" + string(file)
	}
	if strings.TrimSpace(text) == "" {
		if f.recipientsFile != "" || len(f.recipients) > 0 {
			return backup.Encoding{},
				usageError{errors.New("--recipient, --recipients-file: no recipient is specified; without a " +
					"recipient, the backup would not be encrypted")}
		}
		if strings.HasSuffix(to, ".age") {
			return backup.Encoding{},
				usageError{fmt.Errorf("--to %s: without --recipient, the backup would not be encrypted", to)}
		}
		return e, nil
	}
	var err error
	if e.Recipients, err = age.ParseRecipients(strings.NewReader(text)); err != nil {
		return backup.Encoding{}, usageError{fmt.Errorf("--recipient, --recipients-file: %w", err)}
	}
	if err := e.Check(); err != nil { // before etcd is contacted
		return backup.Encoding{}, usageError{fmt.Errorf("--recipient, --recipients-file: %w", err)}
	}
	return e, nil
}

// timeoutFlag is the timeout of a command.
type timeoutFlag time.Duration

func (f *timeoutFlag) add(c *cobra.Command) { f.addFor(c, "the whole command") }

func (f *timeoutFlag) addFor(c *cobra.Command, what string) {
	c.Flags().DurationVar((*time.Duration)(f), "timeout", 30*time.Minute, "maximum time for "+what)
}

// within returns a context that ends when the timeout has passed.
func (f timeoutFlag) within(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := time.Duration(f)
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than --timeout %s", limit))
}

// readingFlags specify how to read a backup.
type readingFlags struct {
	from       string
	identities []string
	store      storeFlags
	maxBytes   int64
	timeout    timeoutFlag
	// result is a file that identifies the backup to read. wanted is the content of such a file.
	result string
	wanted *result.Result
	// narrow selects the candidates if no backup is named; the newest candidate is read. If narrow is nil, all backups
	// are candidates.
	narrow func(store.Listing) (store.Listing, error)
}

// addMaxBytes adds the flag for the maximum snapshot size.
func addMaxBytes(c *cobra.Command, most *int64) {
	*most = 16 << 30
	addBytes(c.Flags(), most, "max-bytes", "maximum uncompressed size of a snapshot, in bytes")
}

const helpFrom = "location of the backups: " + store.Locations

func (f *readingFlags) add(c *cobra.Command, help string) {
	c.Flags().StringVar(&f.from, "from", "", help)
	require(c, "from")
	f.store.add(c)
}

func (f *readingFlags) addIdentity(c *cobra.Command) {
	addMaxBytes(c, &f.maxBytes)
	c.Flags().StringArrayVar(&f.identities, "identity", nil,
		"file with an age identity that can read the backup; repeatable")
}

// list opens the store to read from, and lists the backups of one cluster or of all clusters.
func (f *readingFlags) list(ctx context.Context, of store.Cluster) (store.Bucket, store.Listing, error) {
	bucket, err := f.store.open(ctx, "from", f.from)
	if err != nil {
		return nil, store.Listing{}, err
	}
	listing, err := store.List(ctx, bucket, of)
	if err != nil {
		bucket.Close()
		return nil, store.Listing{}, fmt.Errorf("list backups: %w", err)
	}
	return bucket, listing, nil
}

// none returns the message that the store does not contain a backup of a cluster, or any backup.
func (f *readingFlags) none(of store.Cluster) string {
	if of.Name == "" {
		return "no backup in " + printable.Line(f.from)
	}
	return fmt.Sprintf("no backup of %s in %s", of, printable.Line(f.from))
}

// reading returns the settings for reading a backup, and a function to call afterwards.
func (f *readingFlags) reading(std streams) (backup.Reading, func(), error) {
	r := backup.Reading{Inspect: inspectApart, MaxBytes: f.maxBytes}
	for _, name := range f.identities {
		identities, err := identitiesIn(name)
		if err != nil {
			return backup.Reading{}, nil, usageError{fmt.Errorf("--identity: %w", err)}
		}
		r.Identities = append(r.Identities, identities...)
	}
	boundBackup()
	var done func()
	r.Progress, done = bars(std.err)
	return r, done, nil
}

// identitiesIn reads a file of age identities. Errors do not reveal its content.
func identitiesIn(name string) ([]age.Identity, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	identities, err := age.ParseIdentities(file)
	if err != nil {
		return nil, fmt.Errorf("%s must contain only age identities, one per line", name)
	}
	return identities, nil
}

// clusterNamed parses [NAMESPACE/]NAME.
func clusterNamed(argument string, namespaces []string) (store.Cluster, error) {
	namespace, name, both := strings.Cut(argument, "/")
	switch {
	case !both && len(namespaces) > 1:
		return store.Cluster{}, usageError{fmt.Errorf("%s: use NAMESPACE/%s, because --namespace is set to several "+
			"namespaces",
			argument, argument)}
	case !both && len(namespaces) == 1:
		namespace, name = namespaces[0], argument
	case !both:
		namespace, name = "default", argument
	case len(namespaces) > 0:
		return store.Cluster{}, usageError{fmt.Errorf("%s includes its namespace; remove --namespace", argument)}
	}
	for _, part := range []string{namespace, name} {
		if !store.IsName(part) {
			return store.Cluster{}, usageError{fmt.Errorf("%q is not a cluster name: use NAMESPACE/NAME", argument)}
		}
	}
	return store.Cluster{Namespace: namespace, Name: name}, nil
}

// require marks a flag as required.
func require(c *cobra.Command, flag string) {
	if err := c.MarkFlagRequired(flag); err != nil {
		panic(err) // the flag does not exist
	}
}
