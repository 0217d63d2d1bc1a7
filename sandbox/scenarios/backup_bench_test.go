package scenarios

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	benchDatabase = 1 << 30
	benchValue    = 256 << 10
	benchBackups  = 10_000
	// byHand is the key of a snapshot that is uploaded manually.
	byHand = "by-hand/snapshot.db"
)

// BenchmarkBackup measures a backup of 1 GiB to an S3 store, with verification, compression and upload. It compares
// this to an etcdctl snapshot to a file, without any of these steps, and to an etcdctl snapshot with a check by etcdutl
// and a plain upload. It also measures the latency of concurrent writes, a restore (compared to a download with a check
// and restore by etcdutl), and a drill.
func BenchmarkBackup(b *testing.B) {
	tools := filepath.Join(binary("tools"), "etcd-"+modern)
	peer := "http://" + freeAddress()
	c := startEtcd(b, filepath.Join(b.TempDir(), "data"), "r", peer, "--initial-cluster=r="+peer, "--initial-advertise-peer-urls="+peer,
		"--quota-backend-bytes="+strconv.Itoa(4*benchDatabase), "--unsafe-no-fsync")
	fillEtcd(b, c)
	s3 := serveS3(b)
	endpoint := c.Endpoints()[0]
	dir := b.TempDir()
	file := filepath.Join(dir, "etcdctl.db")
	quiet := writes(c, func() { time.Sleep(5 * time.Second) })

	bare := measured(b, nil, filepath.Join(tools, "etcdctl"), "--endpoints", endpoint, "snapshot", "save", file)
	checked := measured(b, nil, filepath.Join(tools, "etcdutl"), "snapshot", "status", file)
	uploaded := s3.upload(b, file)
	backup := func() usage {
		return measured(b, s3.environment(), binary("quorate"), s3.flags("backup", "ns/a", "--to", s3.url, "--member", "r="+endpoint)...)
	}
	stored := backup()
	busy := writes(c, func() { backup() })
	figure("backup_throughput_ratio", bare.took.Seconds()/stored.took.Seconds(), "ratio")
	figure("backup_over_by_hand", stored.took.Seconds()/(bare.took+checked.took+uploaded).Seconds(), "ratio")
	figure("backup_seconds_per_gib", stored.took.Seconds(), "s")
	figure("backup_job_memory", float64(stored.peak)/(1<<20), "MiB")
	figure("backup_write_p99_ratio", busy.Seconds()/quiet.Seconds(), "ratio")

	downloaded := s3.download(b, filepath.Join(dir, "downloaded.db"))
	again := measured(b, nil, filepath.Join(tools, "etcdutl"), "snapshot", "status", filepath.Join(dir, "downloaded.db"))
	utl := measured(b, nil, filepath.Join(tools, "etcdutl"), "snapshot", "restore", filepath.Join(dir, "downloaded.db"), "--data-dir", filepath.Join(dir, "bare"),
		"--bump-revision=1000000000", "--mark-compacted")
	restored := measured(b, s3.environment(), binary("quorate"), s3.flags("restore", "ns/a", "--from", s3.url, "--data-dir", filepath.Join(dir, "restored"))...)
	figure("restore_ratio", restored.took.Seconds()/(downloaded+again.took+utl.took).Seconds(), "ratio")
	figure("restore_seconds_per_gib", restored.took.Seconds(), "s")
	figure("restore_memory", float64(restored.peak)/(1<<20), "MiB")
	drill := measured(b, s3.environment(), binary("quorate"), s3.flags("backups", "drill", "ns/a", "--from", s3.url, "--etcd", filepath.Join(tools, "etcd"))...)
	figure("drill_seconds_per_gib", drill.took.Seconds(), "s")
}

// benchPatience is the maximum acceptable time to list many backups or to prune a few.
const benchPatience = 10 * time.Second

// BenchmarkBackups measures how long it takes to list and prune a large number of stored backups. A dry run and an
// actual run must select the same backups.
func BenchmarkBackups(b *testing.B) {
	peer := "http://" + freeAddress()
	c := startEtcd(b, filepath.Join(b.TempDir(), "data"), "r", peer, "--initial-cluster=r="+peer, "--initial-advertise-peer-urls="+peer)
	s3 := serveS3(b)
	measured(b, s3.environment(), binary("quorate"), s3.flags("backup", "ns/a", "--to", s3.url, "--member", "r="+c.Endpoints()[0])...)
	s3.multiply(b, benchBackups)
	listed := measured(b, s3.environment(), binary("quorate"), s3.flags("backups", "list", "ns/a", "--from", s3.url)...)
	figure("backups_list_10000", listed.took.Seconds(), "s")
	measured(b, s3.environment(), binary("quorate"), s3.flags("backups", "verify", "ns/a", "--from", s3.url)...)
	prune := s3.flags("backups", "prune", "ns/a", "--from", s3.url, "--last", "7")
	planned := measured(b, s3.environment(), binary("quorate"), append(slices.Clone(prune), "--dry-run")...)
	figure("backups_prune_dry_run_10000", planned.took.Seconds(), "s")
	pruned := measured(b, s3.environment(), binary("quorate"), prune...)
	figure("backups_prune_10000", pruned.took.Seconds(), "s")
	figure("backups_prune_10000_memory", float64(pruned.peak)/(1<<20), "MiB")
	for what, took := range map[string]time.Duration{"listing": listed.took, "a dry run": planned.took, "pruning": pruned.took} {
		if took > benchPatience {
			b.Errorf("%s took %s with %d backups", what, took, benchBackups)
		}
	}
}

// fillEtcd writes data that compresses about as well as Kubernetes objects.
func fillEtcd(b testing.TB, c *clientv3.Client) {
	b.Helper()
	chance := rand.NewChaCha8([32]byte{1})
	half := make([]byte, benchValue/2)
	for i := range benchDatabase / benchValue {
		_, _ = chance.Read(half)
		value := base64.StdEncoding.EncodeToString(half)[:benchValue/2] + strings.Repeat(fmt.Sprintf("%64d", i), benchValue/128)
		if _, err := c.Put(b.Context(), fmt.Sprintf("k/%d", i), value); err != nil {
			b.Fatal(err)
		}
	}
}

// writes returns the 99th percentile of the write latency while do is running.
func writes(c *clientv3.Client, do func()) time.Duration {
	var ended atomic.Bool
	ctx, cancel := context.WithCancel(context.Background())
	took := make(chan []time.Duration, 1)
	go func() {
		var all []time.Duration
		for i := 0; !ended.Load(); i++ {
			start := time.Now()
			if _, err := c.Put(ctx, fmt.Sprintf("w/%d", i%100), "x"); err == nil {
				all = append(all, time.Since(start))
			}
		}
		took <- all
	}()
	do()
	ended.Store(true)
	all := <-took
	cancel()
	return percentile(all, 99)
}

// usage is the time and memory used by a command.
type usage struct {
	took time.Duration
	peak int64 // peak total anonymous memory of the processes, in bytes
}

// measured runs a command, which must succeed, and returns its usage.
func measured(b testing.TB, environment []string, program string, args ...string) usage {
	b.Helper()
	command := exec.Command(program, args...)
	command.Env = append(append(os.Environ(), "NO_COLOR=1"), environment...)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	start := time.Now()
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var u usage
	for {
		select {
		case err := <-ended:
			if err != nil {
				b.Fatalf("%s %s: %v\n%s", program, args, err, said.String())
			}
			u.took = time.Since(start)
			return u
		case <-time.After(10 * time.Millisecond):
			u.peak = max(u.peak, anonymous(command.Process.Pid))
		}
	}
}

// upload uploads a file unchanged, as in a manual backup, and returns how long this took.
func (s s3Server) upload(b testing.TB, path string) time.Duration {
	b.Helper()
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	client, start := s.client(b), time.Now()
	if _, err := client.PutObject(b.Context(), &awss3.PutObjectInput{Bucket: aws.String(s3Bucket), Key: aws.String(byHand), Body: file}); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// download downloads the object that upload stored, and returns how long this took.
func (s s3Server) download(b testing.TB, path string) time.Duration {
	b.Helper()
	client, start := s.client(b), time.Now()
	got, err := client.GetObject(b.Context(), &awss3.GetObjectInput{Bucket: aws.String(s3Bucket), Key: aws.String(byHand)})
	if err != nil {
		b.Fatal(err)
	}
	defer got.Body.Close()
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(file, got.Body); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// multiply stores copies of the only backup in the store, each dated one minute before the previous one.
func (s s3Server) multiply(b *testing.B, times int) {
	b.Helper()
	client := s.client(b)
	listed, err := client.ListObjectsV2(b.Context(), &awss3.ListObjectsV2Input{Bucket: aws.String(s3Bucket)})
	if err != nil || len(listed.Contents) != 2 {
		b.Fatalf("%+v %v", listed, err)
	}
	stored := map[string][]byte{} // by extension
	names := map[string]string{}
	for _, object := range listed.Contents {
		got, err := client.GetObject(b.Context(), &awss3.GetObjectInput{Bucket: aws.String(s3Bucket), Key: object.Key})
		if err != nil {
			b.Fatal(err)
		}
		content, err := io.ReadAll(got.Body)
		if err != nil {
			b.Fatal(err)
		}
		extension := filepath.Ext(*object.Key)
		stored[extension], names[extension] = content, *object.Key
	}
	var m map[string]any
	if err := json.Unmarshal(stored[".json"], &m); err != nil {
		b.Fatal(err)
	}
	slot, err := time.Parse(time.RFC3339, m["slot"].(string))
	if err != nil {
		b.Fatal(err)
	}
	const layout = "20060102t150405z"
	for i := 1; i < times; i++ {
		earlier := slot.Add(-time.Duration(i) * time.Minute).UTC()
		for extension, name := range names {
			name = strings.Replace(name, slot.UTC().Format(layout), earlier.Format(layout), 1)
			content := stored[extension]
			if extension == ".json" {
				m["slot"], m["data"] = earlier.Format(time.RFC3339), strings.Replace(filepath.Base(names[".zst"]), slot.UTC().Format(layout), earlier.Format(layout), 1)
				if content, err = json.Marshal(m); err != nil {
					b.Fatal(err)
				}
			}
			if _, err := client.PutObject(b.Context(), &awss3.PutObjectInput{Bucket: aws.String(s3Bucket), Key: aws.String(name), Body: bytes.NewReader(content)}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func (s s3Server) client(b testing.TB) *awss3.Client {
	b.Helper()
	ca, err := os.ReadFile(s.ca)
	if err != nil {
		b.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return awss3.New(awss3.Options{
		BaseEndpoint: aws.String(s.endpoint), Region: "us-east-1", UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: s3User, SecretAccessKey: s3Secret}, nil
		}),
		HTTPClient: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: s.dial}},
	})
}

// percentile returns the given percentile of values.
func percentile(values []time.Duration, of int) time.Duration {
	slices.Sort(values)
	return values[min(len(values)-1, len(values)*of/100)]
}
