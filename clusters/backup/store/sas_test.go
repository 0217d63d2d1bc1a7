package store

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestErrorsHideSASToken checks that errors do not contain a SAS token, even if it was pasted in the wrong form.
func TestErrorsHideSASToken(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "shop")
	once, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // no retries
	defer cancel()
	for _, token := range []string{
		"sv=2024&sig=SECRET", `"sv=2024&sig=SECRET"`, "'sv=2024&sig=SECRET'", "sv=2024&sig=SECRET\nAZURE_STORAGE_KEY=SECRET",
		"sv=2024 sig=SECRET", "sv=2024&sig=%SECRET", "sv=2024 &sig=SECRET\x01", "sv=2024&\x01sig=SECRET",
		"https://shop.blob.core.windows.net/?sv=1&sig=SECRET",
	} {
		t.Setenv("AZURE_STORAGE_SAS_TOKEN", token)
		for _, endpoint := range []string{"http://127.0.0.1:1", ""} {
			if endpoint == "" && !strings.ContainsFunc(token, notInQuery) {
				continue // this would contact Azure
			}
			bucket, err := Location{Scheme: "azblob", Bucket: "backups"}.Open(t.Context(), Options{AzureEndpoint: endpoint})
			if err == nil {
				_, err = bucket.Size(once, "x")
			}
			if err == nil || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%q: %v", token, err)
			}
		}
	}
}

// TestSASTokenRequiresHTTPS checks that a SAS token, like Google's token, is sent only over HTTPS, because anyone who
// intercepts the token can use it.
func TestSASTokenRequiresHTTPS(t *testing.T) {
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2024&sig=SECRET")
	for endpoint, clear := range map[string]bool{
		"http://shop.blob.example.com": true, "http://azurite:10000/shop": true, "http://192.0.2.1/shop": true,
		"https://shop.blob.example.com": false, "http://127.0.0.1:10000/shop": false, "http://[::1]:10000/shop": false, "http://localhost/shop": false,
	} {
		bucket, err := Location{Scheme: "azblob", Bucket: "backups"}.Open(t.Context(), Options{AzureEndpoint: endpoint})
		if refused := err != nil && strings.Contains(err.Error(), "unencrypted"); refused != clear || err == nil && bucket.Close() != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "")
	t.Setenv("AZURE_STORAGE_ACCOUNT", "shop")
	t.Setenv("AZURE_STORAGE_KEY", "bm8gc2VjcmV0") // used only for signing, never sent
	if _, err := (Location{Scheme: "azblob", Bucket: "backups"}).Open(t.Context(), Options{AzureEndpoint: "http://azurite:10000/shop"}); err != nil {
		t.Error(err)
	}
}
