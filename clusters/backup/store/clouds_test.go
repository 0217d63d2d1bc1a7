package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/smithy-go"
	"github.com/fsouza/fake-gcs-server/fakestorage"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"

	"quorate.dev/quorate/internal/printable/printabletest"
)

// front is a handler in front of a store. It can respond instead of the store.
type front struct {
	store   http.Handler
	instead atomic.Value // of func(http.ResponseWriter, *http.Request) bool
	// options are the settings for connecting to the store. dir is the data directory of an S3 store.
	options Options
	dir     string
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	instead, _ := f.instead.Load().(func(http.ResponseWriter, *http.Request) bool)
	if instead == nil || !instead(w, r) {
		f.store.ServeHTTP(w, r)
	}
}

func open(t *testing.T, url string, o Options) objects {
	t.Helper()
	location, err := ParseLocation(url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := location.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b.(objects)
}

// gcsEmulator prepares a Google Cloud Storage emulator. The caller must start the server.
func gcsEmulator(t *testing.T, scheme string) (*httptest.Server, *front) {
	f := &front{}
	served := httptest.NewUnstartedServer(f)
	address := served.Listener.Addr().String()
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, ExternalURL: scheme + "://" + address, PublicHost: address})
	if err != nil {
		t.Fatal(err)
	}
	fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "backups"})
	f.store = fake.HTTPHandler()
	t.Cleanup(func() { served.Close(); fake.Stop() })
	return served, f
}

func gcs(t *testing.T) (objects, *front) {
	served, f := gcsEmulator(t, "http")
	served.Start()
	t.Setenv("STORAGE_EMULATOR_HOST", served.Listener.Addr().String())
	return open(t, "gs://backups/ours", Options{}), f
}

const azureAccount = "person"

// azure returns a store that uses an Azure Blob Storage stub.
func azure(t *testing.T) (objects, *front) {
	f := &front{store: &azureStub{blobs: map[string][]byte{}, blocks: map[string][]byte{}}}
	served := httptest.NewServer(f)
	t.Cleanup(served.Close)
	return openAzureAt(t, served.URL), f
}

func openAzureAt(t *testing.T, endpoint string) objects {
	t.Setenv("AZURE_STORAGE_ACCOUNT", azureAccount)
	t.Setenv("AZURE_STORAGE_KEY", base64.StdEncoding.EncodeToString([]byte("not a secret")))
	return open(t, "azblob://backups/ours", Options{AzureEndpoint: endpoint + "/" + azureAccount})
}

// azureStub implements the parts of Azure Blob Storage that a store needs. It lists two blobs per page and does not
// check credentials.
type azureStub struct {
	mu            sync.Mutex
	blobs, blocks map[string][]byte
	// odd makes the stub list names in reverse order and repeat the last name of each page on the next page.
	odd bool
}

func (s *azureStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // like a truncated request
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/"+azureAccount+"/backups/")
	query := r.URL.Query()
	stored, there := s.blobs[name]
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("x-ms-creation-time", time.Now().UTC().Format(http.TimeFormat))
	switch {
	case query.Get("comp") == "list":
		s.list(w, query.Get("prefix"), query.Get("marker"))
	case query.Get("comp") == "block":
		s.blocks[name+query.Get("blockid")] = body
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut && there && r.Header.Get("If-None-Match") == "*":
		azureAnswer(w, http.StatusConflict, "BlobAlreadyExists")
	case r.Method == http.MethodPut:
		if query.Get("comp") == "blocklist" {
			var list struct{ Latest []string }
			_ = xml.Unmarshal(body, &list)
			body = nil
			for _, block := range list.Latest {
				body = append(body, s.blocks[name+block]...)
			}
		}
		s.blobs[name] = body
		w.WriteHeader(http.StatusCreated)
	case !there:
		azureAnswer(w, http.StatusNotFound, "BlobNotFound")
	case r.Method == http.MethodDelete:
		delete(s.blobs, name)
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Length", fmt.Sprint(len(stored)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(stored)
		}
	}
}

func (s *azureStub) list(w io.Writer, prefix, marker string) {
	var names []string
	for name := range s.blobs {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if s.odd {
		slices.Reverse(names)
	}
	page := names[max(0, slices.Index(names, marker)):]
	fmt.Fprint(w, "<EnumerationResults><Blobs>")
	for _, name := range page[:min(2, len(page))] {
		fmt.Fprintf(w, "<Blob><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified><Content-Length>%d</Content-Length></Properties></Blob>",
			name, time.Now().UTC().Format(http.TimeFormat), len(s.blobs[name]))
	}
	next := ""
	if len(page) > 2 {
		next = page[2]
		if s.odd {
			next = page[1]
		}
	}
	fmt.Fprintf(w, "</Blobs><NextMarker>%s</NextMarker></EnumerationResults>", next)
}

func azureAnswer(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>a long message</Message></Error>", code)
}

// azurite starts the Azure Blob Storage emulator. QUORATE_AZURITE is the path of the azurite-blob program.
func azurite(t *testing.T) Bucket {
	program := os.Getenv("QUORATE_AZURITE")
	if program == "" {
		t.Skip("QUORATE_AZURITE does not name an azurite-blob")
	}
	key := base64.StdEncoding.EncodeToString([]byte("not a secret"))
	command := exec.Command(program, "--blobPort", "0", "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	command.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+azureAccount+":"+key)
	says, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	lines, endpoint := bufio.NewScanner(says), ""
	for listens := regexp.MustCompile(`listens on (\S+)`); endpoint == "" && lines.Scan(); {
		if found := listens.FindStringSubmatch(lines.Text()); found != nil {
			endpoint = found[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, says) }()
	t.Setenv("AZURE_STORAGE_ACCOUNT", azureAccount)
	t.Setenv("AZURE_STORAGE_KEY", key)
	o := open(t, "azblob://backups/ours", Options{AzureEndpoint: endpoint + "/" + azureAccount})
	var c *container.Client
	if !o.bucket.As(&c) {
		t.Fatal("it is not Azure's")
	}
	if _, err := c.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return o
}

// eachCloud runs a test with each kind of object store. The test can replace the store's responses.
func eachCloud(t *testing.T, test func(t *testing.T, b objects, f *front)) {
	for name, serve := range map[string]func(*testing.T) (objects, *front){"s3": versitygw, "gs": gcs, "azblob": azure} {
		t.Run(name, func(t *testing.T) {
			b, f := serve(t)
			test(t, b, f)
		})
	}
}

// large returns more data than fits into two parts.
func large(fill string) io.Reader {
	return io.LimitReader(strings.NewReader(strings.Repeat(fill, 2*partSize+1)), 2*partSize+1)
}

// TestMultipartUploadIsAtomic checks that a multipart upload creates an object completely or not at all, and does not
// replace an existing object.
func TestMultipartUploadIsAtomic(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		broken := io.MultiReader(large("x"), iotest.ErrReader(errors.New("cut")))
		if err := b.Create(t.Context(), "ns/a/1", broken); err == nil || errors.Is(err, ErrExists) {
			t.Errorf("half of it: %v", err)
		}
		if names, err := b.List(t.Context(), ""); len(names) > 0 || err != nil {
			t.Errorf("half of it is %q, %v", names, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := b.Create(ctx, "ns/a/1", io.MultiReader(large("x"), canceling{cancel})); err == nil {
			t.Error("it was stored after the end")
		}
		if err := b.Create(t.Context(), "ns/a/1", large("a")); err != nil {
			t.Fatal(err)
		}
		if err := b.Create(t.Context(), "ns/a/1", large("b")); !errors.Is(err, ErrExists) {
			t.Errorf("again: %v", err)
		}
		if size, err := b.Size(t.Context(), "ns/a/1"); size != 2*partSize+1 || err != nil {
			t.Errorf("%d bytes, %v", size, err)
		}
		if strings.Trim(content(t, b, "ns/a/1"), "a") != "" {
			t.Error("it was replaced")
		}
	})
}

// canceling is an endless reader that cancels a context when it is read.
type canceling struct{ cancel func() }

func (c canceling) Read(p []byte) (int, error) {
	c.cancel()
	return copy(p, "x"), nil
}

// TestUploadRequestsStayWithinPartSize checks that requests are never larger than a part, because parts are held in
// memory.
func TestUploadRequestsStayWithinPartSize(t *testing.T) {
	eachCloud(t, func(t *testing.T, b objects, f *front) {
		var most atomic.Int64
		f.instead.Store(func(_ http.ResponseWriter, r *http.Request) bool {
			for size := r.ContentLength; ; {
				if now := most.Load(); now >= size || most.CompareAndSwap(now, size) {
					return false
				}
			}
		})
		if err := b.Create(t.Context(), "ns/a/1", large("a")); err != nil || most.Load() != partSize {
			t.Errorf("%d bytes in a request, %v", most.Load(), err)
		}
	})
}

// TestListReadsAllPages checks that a list is complete and in order, even if it has many pages.
func TestListReadsAllPages(t *testing.T) {
	eachBucket(t, func(t *testing.T, b Bucket) {
		var want []string
		var all sync.WaitGroup
		for i := range 1100 {
			name := fmt.Sprintf("ns/a/%d", i)
			want = append(want, name)
			if _, is := b.(directory); !is || i < 10 {
				all.Go(func() {
					if err := b.Create(t.Context(), name, strings.NewReader("x")); err != nil {
						t.Error(err)
					}
				})
			}
			if i%20 == 0 {
				all.Wait()
			}
		}
		all.Wait()
		if _, is := b.(directory); is {
			want = want[:10]
		}
		slices.Sort(want)
		if names, err := b.List(t.Context(), "ns/"); err != nil || !slices.Equal(names, want) {
			t.Errorf("%d names of %d, %v", len(names), len(want), err)
		}
	})
}

// refusals are the stores' error responses and their meanings.
var refusals = map[string][]struct {
	status int
	code   string
	want   error
}{
	"s3": {
		{403, "AccessDenied", ErrHeld}, {404, "NoSuchKey", ErrNotFound}, {400, "ExpiredToken", nil}, {409, "OperationAborted", nil},
	},
	"gs": {
		{403, "forbidden", ErrHeld}, {403, "retentionPolicyNotMet", ErrHeld}, {404, "notFound", ErrNotFound}, {401, "authError", nil}, {400, "invalid", nil},
	},
	"azblob": {
		{403, "AuthorizationPermissionMismatch", ErrHeld}, {403, "AuthenticationFailed", ErrHeld}, {409, "BlobImmutableDueToPolicy", ErrHeld},
		{409, "BlobImmutableDueToLegalHold", ErrHeld}, {409, "SnapshotsPresent", ErrHeld}, {412, "LeaseIdMissing", ErrHeld},
		{404, "BlobNotFound", ErrNotFound}, {409, "ContainerBeingDeleted", nil}, {400, "InvalidUri", nil},
	},
}

// refuse sends an error response.
func refuse(w http.ResponseWriter, r *http.Request, status int, code string) bool {
	if strings.HasPrefix(r.URL.Path, "/"+azureAccount+"/") {
		azureAnswer(w, status, code)
		return true
	}
	if strings.HasPrefix(r.URL.Path, "/backups") {
		s3Answer(w, status, code)
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %d, "message": "a message", "errors": [{"reason": %q}]}}`, status, code)
	return true
}

// isList reports whether the request lists names.
func isList(r *http.Request) bool {
	q := r.URL.Query()
	return q.Get("comp") == "list" || q.Has("list-type") || r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/o")
}

// TestRefusedRequestDoesNotProveExistence checks that a rejected request does not count as evidence that an object
// exists or that it is missing.
func TestRefusedRequestDoesNotProveExistence(t *testing.T) {
	eachCloud(t, func(t *testing.T, b objects, f *front) {
		_, kind, _ := strings.Cut(t.Name(), "/")
		for _, c := range refusals[kind] {
			f.instead.Store(func(w http.ResponseWriter, r *http.Request) bool {
				return (c.status != 404 || !isList(r)) && refuse(w, r, c.status, c.code) // the bucket itself exists
			})
			_, opened := b.Open(t.Context(), "ns/a/1")
			_, sized := b.Size(t.Context(), "ns/a/1")
			said := map[string]error{
				"open": opened, "size": sized, "delete": b.Delete(t.Context(), "ns/a/1"),
				"create": b.Create(t.Context(), "ns/a/1", strings.NewReader("x")), "replace": b.Replace(t.Context(), "ns/a/1", strings.NewReader("x")),
			}
			if c.status != 404 {
				_, said["list"] = b.List(t.Context(), "ns/")
			}
			for what, err := range said {
				if err == nil || strings.Contains(err.Error(), "\n") {
					t.Errorf("%d %s: %s: %v", c.status, c.code, what, err)
				}
				for _, known := range []error{ErrHeld, ErrNotFound, ErrExists} {
					if errors.Is(err, known) != errors.Is(c.want, known) {
						t.Errorf("%d %s: %s: %v, want %v", c.status, c.code, what, err, c.want)
					}
				}
			}
		}
	})
}

// TestUploadRetryAcceptsOwnObject checks that an upload is repeated if its response is lost, and that the existing
// object is then recognized by its size as the caller's own. This must also work without the right to replace objects.
func TestUploadRetryAcceptsOwnObject(t *testing.T) {
	held := map[string]func(http.ResponseWriter, *http.Request) bool{
		"s3": func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 403, "AccessDenied") },
		"gs": func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 403, "forbidden") },
		"azblob": func(w http.ResponseWriter, r *http.Request) bool {
			return refuse(w, r, 409, "BlobImmutableDueToPolicy")
		},
	}
	for _, then := range []string{"it exists", "it is held"} {
		t.Run(then, func(t *testing.T) {
			eachCloud(t, func(t *testing.T, b objects, f *front) {
				kind := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
				var writes atomic.Int32
				f.instead.Store(func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method != http.MethodPut && r.Method != http.MethodPost {
						return false
					}
					if writes.Add(1) == 1 {
						f.store.ServeHTTP(httptest.NewRecorder(), r)
						return refuse(w, r, 503, "ServerBusy")
					}
					return then == "it is held" && held[kind](w, r)
				})
				if err := b.Create(t.Context(), "ns/a/1", strings.NewReader("ours")); !errors.Is(err, ErrExists) {
					t.Errorf("%v", err)
				}
				if size, err := b.Size(t.Context(), "ns/a/1"); size != 4 || err != nil || writes.Load() < 2 {
					t.Errorf("%d bytes, %v, after %d requests", size, err, writes.Load())
				}
			})
		})
	}
}

// TestBusyStoreIsRetried checks that requests to a busy store are retried.
func TestBusyStoreIsRetried(t *testing.T) {
	eachCloud(t, func(t *testing.T, b objects, f *front) {
		if err := b.Create(t.Context(), "ns/a/1", strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int32
		f.instead.Store(func(w http.ResponseWriter, r *http.Request) bool {
			return asked.Add(1) == 1 && refuse(w, r, 503, "ServerBusy")
		})
		if err := b.Delete(t.Context(), "ns/a/1"); err != nil || asked.Load() < 2 {
			t.Errorf("%v after %d requests", err, asked.Load())
		}
	})
}

// TestUnrelatedErrorsHaveUnknownCode checks that errors that are not about an object do not count as evidence about the
// object.
func TestUnrelatedErrorsHaveUnknownCode(t *testing.T) {
	for _, err := range []error{&net.DNSError{Err: "no such host", IsNotFound: true}, io.ErrUnexpectedEOF, context.Canceled} {
		if azureCode(err) != gcerrors.Unknown || gcsCode(err) != gcerrors.Unknown {
			t.Errorf("%v: %v, %v", err, azureCode(err), gcsCode(err))
		}
	}
}

// TestErrorsHideSecrets checks that errors do not contain a SAS token, not even a malformed one, or an upload key.
func TestErrorsHideSecrets(t *testing.T) {
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2026&sig=secret%3D")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := open(t, "azblob://backups/ours", Options{AzureEndpoint: "http://127.0.0.1:1/" + azureAccount})
	_, listed := b.List(ctx, "")
	_, opened := b.Open(ctx, "ns/a/1")
	failed := map[string]error{
		"list": listed, "open": opened, "create": b.Create(ctx, "ns/a/1", strings.NewReader("x")),
		"upload": discreet{fmt.Errorf("retry failed: %s; and: %w", `Put "https://storage.googleapis.com/upload?upload_id=secret": EOF`, &url.Error{Op: "Put", URL: "https://h/p?upload_id=secret", Err: io.EOF})},
	}
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2026&sig=\x01secret")
	_, failed["broken token"] = Location{Scheme: "azblob", Bucket: "b"}.Open(t.Context(), Options{AzureEndpoint: "https://h"})
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountKey=secret")
	_, failed["two endpoints"] = Location{Scheme: "azblob", Bucket: "b"}.Open(t.Context(), Options{AzureEndpoint: "https://h"})
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "")
	t.Setenv("AZURE_STORAGE_ACCOUNT", "person")
	_, failed["broken connection string"] = Location{Scheme: "azblob", Bucket: "b"}.Open(t.Context(), Options{})
	t.Setenv("AZURE_STORAGE_KEY", "!secret")
	_, failed["broken key"] = Location{Scheme: "azblob", Bucket: "b"}.Open(t.Context(), Options{})
	for _, endpoint := range []string{"http://h", "https://h/secret", "https://user:secret@h", "https://h?secret"} {
		_, failed[endpoint] = Location{Scheme: "gs", Bucket: "b"}.Open(t.Context(), Options{GCSEndpoint: endpoint})
		if !strings.Contains(fmt.Sprint(failed[endpoint]), "the endpoint") {
			t.Errorf("%s: %v", endpoint, failed[endpoint])
		}
	}
	for what, err := range failed {
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestErrorsOfHostileStoreArePrintable checks that errors contain text from a hostile store only in a form that a
// terminal or a CI system does not interpret.
func TestErrorsOfHostileStoreArePrintable(t *testing.T) {
	for name, text := range printabletest.Hostile {
		for kind, err := range map[string]error{
			"other":  discreet{errors.New(text)},
			"Google": discreet{&googleapi.Error{Code: 403, Message: text}},
			"Azure":  discreet{&azcore.ResponseError{StatusCode: 403, ErrorCode: text}},
			"S3":     discreet{&smithy.GenericAPIError{Code: text, Message: text}},
		} {
			if unfit := printabletest.Unfit(err.Error()); unfit != "" || printabletest.Long(err.Error()) {
				t.Errorf("%s, %s: %s", name, kind, unfit)
			}
		}
	}
}

// TestRequestsCarrySASToken checks that every request contains the SAS token, and that blob names are unchanged.
func TestRequestsCarrySASToken(t *testing.T) {
	stub := &azureStub{blobs: map[string][]byte{}, blocks: map[string][]byte{}}
	var bare atomic.Int32
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sig") != "not+a/secret=" {
			bare.Add(1)
		}
		stub.ServeHTTP(w, r)
	}))
	defer served.Close()
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2026&sig=not%2Ba%2Fsecret%3D\n")
	b := open(t, "azblob://backups/p%20q", Options{AzureEndpoint: served.URL + "/" + azureAccount + "/"})
	if err := b.Create(t.Context(), "ns/a/1", large("x")); err != nil || bare.Load() > 0 || !bytes.HasPrefix(stub.blobs["p q/ns/a/1"], []byte("xx")) {
		t.Errorf("%v, %d without the token", err, bare.Load())
	}
}

// TestGCSEndpointRequestsCarryToken checks that every request to a custom endpoint contains the token from the
// application default credentials.
func TestGCSEndpointRequestsCarryToken(t *testing.T) {
	served, f := gcsEmulator(t, "https")
	var bare atomic.Int32
	f.instead.Store(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token": "a-token", "token_type": "Bearer", "expires_in": 3600}`)
			return true
		}
		if r.Header.Get("Authorization") != "Bearer a-token" {
			bare.Add(1)
		}
		return false
	})
	served.StartTLS()
	transport := http.DefaultTransport.(*http.Transport)
	before := transport.TLSClientConfig
	transport.TLSClientConfig = &tls.Config{RootCAs: served.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	t.Cleanup(func() { transport.TLSClientConfig = before })
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@b.invalid", "token_uri": served.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := errors.Join(err, os.WriteFile(file, credentials, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	b := open(t, "gs://backups/ours", Options{GCSEndpoint: served.URL})
	for _, body := range []io.Reader{strings.NewReader("x"), large("x")} {
		if err := b.Replace(t.Context(), "ns/a/1", body); err != nil {
			t.Fatal(err)
		}
	}
	if text := content(t, b, "ns/a/1"); len(text) != 2*partSize+1 || bare.Load() > 0 {
		t.Errorf("%d bytes, %d requests without the token", len(text), bare.Load())
	}
}
