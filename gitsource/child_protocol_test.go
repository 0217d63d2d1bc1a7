package gitsource

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/remote"
)

// TestJobFieldsReachFetcher checks that every field of a job reaches the fetcher.
func TestJobFieldsReachFetcher(t *testing.T) {
	var said, heard job
	count := 0
	fill(reflect.ValueOf(&said).Elem(), "job", func(path string, kind reflect.Kind) { count++ }, t)
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &heard); err != nil {
		t.Fatal(err)
	}
	if count < 40 || !reflect.DeepEqual(said, heard) {
		t.Errorf("of %d fields, sent\n%s\nreceived\n%s", count, fmt.Sprintf("%#v", said), fmt.Sprintf("%#v", heard))
	}
}

// fill sets every field of a value to a non-zero value.
func fill(v reflect.Value, path string, seen func(path string, kind reflect.Kind), t *testing.T) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), path+"."+v.Type().Field(i).Name, seen, t)
			}
		}
		return
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path, seen, t)
		return
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path, seen, t)
		return
	case reflect.String:
		v.SetString(path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	default:
		t.Errorf("%s: how is a %s transferred?", path, v.Kind())
	}
	seen(path, v.Kind())
}

// TestConfinedFetcherUsesEveryTransport checks that a confined fetcher can reach the server over every supported
// transport.
func TestConfinedFetcherUsesEveryTransport(t *testing.T) {
	r := gittest.NewRepository(t)
	r.Declare("a")
	for name, o := range map[string]Options{
		"ssh":         byHashedName(t, r),
		"TLS":         byCertificate(t, r),
		"GitHub App":  byApp(t, r),
		"SOCKS proxy": bySOCKS(t, r),
	} {
		desired, err := Fetch(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantClusters(t, desired, "a")
	}
}

// byHashedName uses a key with a passphrase, and a known_hosts file in which the server's name is hashed.
func byHashedName(t *testing.T, r *gittest.Repository) Options {
	keys := gittest.SSHKeys(t)
	server := r.ServeSSH(keys, gittest.HostKeys(keys, "host")...)
	gittest.Keygen(t, "-q", "-p", "-a", "1", "-P", "", "-N", secret, "-f", filepath.Join(keys, "person"))
	auth := gittest.SSHAuth(t, keys, "person", gittest.KnownHosts(t, keys, server.Address(), "host"))
	gittest.Keygen(t, "-q", "-H", "-f", auth.KnownHosts)
	auth.Passphrase = secret
	return Options{Location: server.URL(filepath.Join(r.Dir, ".git")), Auth: auth}
}

// byCertificate uses a client certificate, and trusts only the given CA.
func byCertificate(t *testing.T, r *gittest.Repository) Options {
	authority := gittest.NewAuthority(t)
	server := authority.Serve(r.Handler(), tls.RequireAndVerifyClientCert, gittest.Day, "127.0.0.1")
	certificate, key := authority.Pair(gittest.Day)
	return Options{Location: server.URL + "/.git", Auth: remote.Auth{
		ClientCertificate: certificate, ClientKey: key, CABundle: authority.PEM(), CAOnly: true,
	}}
}

// byApp requests a token as a GitHub App.
func byApp(t *testing.T, r *gittest.Repository) Options {
	hub, authority, git := gittest.NewGitHub(t), gittest.NewAuthority(t), r.Handler()
	api := authority.Serve(hub, tls.NoClientCert, gittest.Day, "127.0.0.1")
	server := authority.Serve(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if _, password, _ := request.BasicAuth(); password != fmt.Sprint(secret, hub.Given.Load()) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		path, _ := strings.CutPrefix(request.URL.Path, "/owner/fleet.git/")
		request.URL.Path = "/.git/" + path
		git.ServeHTTP(w, request)
	}), tls.NoClientCert, gittest.Day, "127.0.0.1")
	return Options{Location: server.URL + "/owner/fleet.git", Auth: remote.Auth{CABundle: authority.PEM(), GitHubApp: hub.App(api.URL)}}
}

// bySOCKS connects through a SOCKS proxy, which resolves the host name.
func bySOCKS(t *testing.T, r *gittest.Repository) Options {
	authority := gittest.NewAuthority(t)
	server := authority.Serve(r.Handler(), tls.NoClientCert, gittest.Day, "git.example.com")
	return Options{
		Location: "https://git.example.com/.git", Auth: remote.Auth{CABundle: authority.PEM(), ProxyUsername: "x", ProxyPassword: secret},
		Proxy: "socks5://" + gittest.NewSOCKS(t, server.Listener.Addr().String()),
	}
}
