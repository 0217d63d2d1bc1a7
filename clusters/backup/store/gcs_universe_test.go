package store

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCredentialsCannotRedirectBackups checks that credentials for a different cloud that runs Google's software cannot
// redirect backups. The author of a Secret must not be able to decide where backups are stored.
func TestCredentialsCannotRedirectBackups(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@b.iam", "private_key_id": "1", "project_id": "p", "token_uri": "http://127.0.0.1:1/",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "universe_domain": "elsewhere.invalid",
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	b, err := Location{Scheme: "gs", Bucket: "backups"}.Open(t.Context(), Options{})
	if err == nil {
		err = b.Create(t.Context(), "x", strings.NewReader("x"))
	}
	if err == nil || strings.Contains(err.Error(), "storage.elsewhere.invalid") {
		t.Errorf("%v", err)
	}
	t.Log(err)
}
