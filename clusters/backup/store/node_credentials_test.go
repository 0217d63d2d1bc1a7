package store

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestNodeCredentialsAreNotUsed checks that, in pods with declared credentials, the libraries are configured not to
// contact the node's metadata service, which responds to every pod on the node.
func TestNodeCredentialsAreNotUsed(t *testing.T) {
	var asked atomic.Int64
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(metadata.Close)
	t.Cleanup(refusing.Close)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	t.Setenv("IDENTITY_ENDPOINT", metadata.URL) // replaces a fixed address
	t.Setenv("IDENTITY_HEADER", "x")
	for _, test := range []struct{ url, setting, value string }{
		{"s3://backups/ours", "AWS_EC2_METADATA_DISABLED", "true"},
		{"azblob://backups/ours", "AZURE_TOKEN_CREDENTIALS", "WorkloadIdentityCredential"},
	} {
		t.Run(test.url, func(t *testing.T) {
			ask := func() (asks int64) {
				location, err := ParseLocation(test.url)
				if err != nil {
					t.Fatal(err)
				}
				before := asked.Load()
				b, err := location.Open(t.Context(), Options{S3: S3{Endpoint: refusing.URL, PathStyle: true}, AzureEndpoint: "https://127.0.0.1:1"})
				if err == nil {
					_, err = b.Size(t.Context(), "x")
					b.Close()
				}
				if err == nil {
					t.Error("it has credentials")
				}
				return asked.Load() - before
			}
			if ask() == 0 {
				t.Error("without the setting, the node is not asked either: this test shows nothing")
			}
			t.Setenv(test.setting, test.value)
			if n := ask(); n > 0 {
				t.Errorf("the node was asked %d times", n)
			}
		})
	}
}

// TestMissingCredentialsAreNamed checks that the error names the variables if there are no credentials for S3.
func TestMissingCredentialsAreNamed(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	b, err := Location{Scheme: "s3", Bucket: "backups"}.Open(t.Context(), Options{S3: S3{Endpoint: "http://127.0.0.1:1", PathStyle: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Size(t.Context(), "x"); !errors.Is(err, errNoCredentials) || !strings.HasPrefix(err.Error(), "inspect x: "+errNoCredentials.Error()) {
		t.Error(err)
	}
}

// TestRefusalOfIdentityIsNotBlamedOnS3 checks that the error names STS if it does not issue credentials.
func TestRefusalOfIdentityIsNotBlamedOnS3(t *testing.T) {
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>a message</Message></Error></ErrorResponse>")
	}))
	t.Cleanup(served.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"HOME": t.TempDir(), "AWS_ACCESS_KEY_ID": "", "AWS_ROLE_ARN": "arn:aws:iam::1:role/a", "AWS_REGION": "us-east-1",
		"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ENDPOINT_URL_STS": served.URL,
	} {
		t.Setenv(name, value)
	}
	b := open(t, "s3://backups", Options{S3: S3{Endpoint: "http://127.0.0.1:1", PathStyle: true}})
	_, err := b.Size(t.Context(), "x")
	if err == nil || err.Error() != "inspect x: "+errNoCredentials.Error()+": STS returned 403 AccessDenied: a message" {
		t.Error(err)
	}
}
