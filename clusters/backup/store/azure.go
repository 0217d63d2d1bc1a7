package store

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/gcerrors"
)

// openAzure opens a container in Azure Blob Storage.
func openAzure(ctx context.Context, name string, o Options) (*blob.Bucket, error) {
	endpoint, err := o.azureEndpoint()
	if err != nil {
		return nil, err
	}
	client, err := azureClient(endpoint, name)
	if err != nil {
		return nil, err
	}
	return azureblob.OpenBucket(ctx, client, nil)
}

// azureClient returns the same client as azureblob.NewDefaultClient, but with limited responses.
func azureClient(endpoint azureblob.ServiceURL, name string) (*container.Client, error) {
	at, err := url.JoinPath(string(endpoint), name)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
	options := &container.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: limited{&http.Client{Transport: transport}},
	}}
	account, key := os.Getenv("AZURE_STORAGE_ACCOUNT"), os.Getenv("AZURE_STORAGE_KEY")
	connection := cmp.Or(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), os.Getenv("AZURE_STORAGEBLOB_CONNECTIONSTRING"))
	switch {
	case account != "" && key != "":
		credential, err := azblob.NewSharedKeyCredential(account, key)
		if err != nil {
			return nil, err
		}
		return container.NewClientWithSharedKeyCredential(at, credential, options)
	case os.Getenv("AZURE_STORAGE_SAS_TOKEN") != "":
		return container.NewClientWithNoCredential(at, options)
	case connection != "":
		return container.NewClientFromConnectionString(connection, name, options)
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return container.NewClient(at, credential, options)
}

// azureEndpoint returns the URL of the storage account, including the SAS token from the environment if there is one.
func (o Options) azureEndpoint() (azureblob.ServiceURL, error) {
	account := azureblob.NewDefaultServiceURLOptions()
	account.SASToken = strings.TrimPrefix(strings.TrimSpace(account.SASToken), "?")
	if strings.ContainsFunc(account.SASToken, notInQuery) {
		return "", errors.New("AZURE_STORAGE_SAS_TOKEN is not a SAS token: it contains characters that are not " +
			"allowed in a URL, such as spaces, quotes or line breaks")
	}
	if o.AzureEndpoint == "" {
		if account.AccountName == "" {
			return "", errors.New("the storage account is unknown: set AZURE_STORAGE_ACCOUNT, or specify its " +
				"endpoint, https://ACCOUNT.blob.core.windows.net")
		}
		return azureblob.NewServiceURL(account)
	}
	if err := checkEndpoint(o.AzureEndpoint); err != nil {
		return "", err
	}
	for _, name := range []string{"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING"} {
		if os.Getenv(name) != "" {
			return "", errors.New(name + " also sets an endpoint; remove one of them")
		}
	}
	endpoint := strings.TrimRight(o.AzureEndpoint, "/")
	if account.SASToken != "" {
		if u, err := url.Parse(endpoint); err != nil || u.Scheme != "https" && !isLoopback(u.Hostname()) {
			return "", errors.New("AZURE_STORAGE_SAS_TOKEN would be sent unencrypted: the endpoint must be " +
				"https://HOST")
		}
		endpoint += "?" + account.SASToken
	}
	return azureblob.ServiceURL(endpoint), nil
}

// isLoopback reports whether data sent to host stays on this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// notInQuery reports whether a character is not allowed in a URL query.
func notInQuery(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'<>\\^`{|}", r)
}

// azureCode maps an Azure Blob Storage error to a code. gocloud.dev's own mapping treats an unresponsive name server as
// a missing blob, and does not recognize the errors for protected blobs.
func azureCode(err error) gcerrors.ErrorCode {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return gcerrors.Unknown
	}
	holds := bloberror.HasCode(err, bloberror.BlobImmutableDueToPolicy, "BlobImmutableDueToLegalHold",
		bloberror.LeaseIDMissing, bloberror.SnapshotsPresent)
	switch {
	case bloberror.HasCode(err, bloberror.BlobAlreadyExists):
		return gcerrors.AlreadyExists
	case holds:
		return gcerrors.PermissionDenied
	}
	return meaning(answer.StatusCode)
}
