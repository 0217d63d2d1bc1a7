package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/etcd"
)

// memberFlags specify the members of a cluster, for use without Kubernetes.
type memberFlags struct {
	members               []string
	caFile, cert, keyFile string
	verifyHost            bool
	user, passwordFile    string
}

func (f *memberFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.members, "member", nil,
		"NAME=URL of a member, such as a-0=https://10.0.0.7:2379, instead of finding members through Kubernetes; "+
			"repeat it for each voter, because a majority of the named members must return the same member list")
	c.Flags().StringVar(&f.caFile, "cacert", "", "PEM file with the CA that signed the certificates of the members "+
		"in --member")
	c.Flags().StringVar(&f.cert, "cert", "", "PEM file with the client certificate for --member")
	c.Flags().StringVar(&f.keyFile, "key", "", "PEM file with the key of --cert")
	c.Flags().BoolVar(&f.verifyHost, "verify-host", false, "for clusters that Quorate did not create: verify "+
		"members' certificates against the hosts in --member, not against pod DNS names")
	c.Flags().StringVar(&f.user, "user", "", "etcd user to log in as, with the role root, if etcd requires a password")
	c.Flags().StringVar(&f.passwordFile, "password-file", "", "file containing the password of --user")
}

// cluster returns a cluster that consists of the members in the flags. They are expected to be its voters: a single
// member that does not list the others is not backed up.
func (f *memberFlags) cluster(of store.Cluster) (etcd.Cluster, error) {
	c := etcd.Cluster{Namespace: of.Namespace, Name: of.Name}
	addresses := map[string]string{}
	schemes := map[string]bool{}
	for _, text := range f.members {
		name, address, scheme, err := parseMember(text)
		if err != nil {
			return etcd.Cluster{}, usageError{err}
		}
		if addresses[name] != "" {
			return etcd.Cluster{}, usageError{fmt.Errorf("--member names %s twice", name)}
		}
		if slices.ContainsFunc(c.Pods, func(other etcd.Pod) bool { return other.IP == address }) {
			return etcd.Cluster{}, usageError{fmt.Errorf("--member has the address %s twice", address)}
		}
		addresses[name], schemes[scheme] = address, true
		pod := etcd.Pod{Name: name, IP: address}
		if host, _, err := net.SplitHostPort(address); err == nil && f.verifyHost {
			pod.Host = host
		}
		c.Pods = append(c.Pods, pod)
		c.Voters = append(c.Voters, name)
	}
	if len(schemes) > 1 {
		return etcd.Cluster{}, usageError{errors.New("--member: some URLs use https, others http")}
	}
	c.Dial = func(ctx context.Context, pod string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addresses[pod])
	}
	if err := f.checkTLS(schemes["https"]); err != nil {
		return etcd.Cluster{}, usageError{err}
	}
	var err error
	if c.Login, err = f.login(); err != nil || !schemes["https"] {
		return c, err
	}
	c.TLS, err = f.readTLS()
	return c, err
}

// checkTLS checks the flags for certificates. Quorate's clusters require a client certificate; other clusters may use
// passwords, or no authentication.
func (f *memberFlags) checkTLS(https bool) error {
	certificate, key := f.cert != "", f.keyFile != ""
	switch {
	case !https && (f.anyFile() || f.verifyHost):
		return errors.New("--cacert, --cert, --key and --verify-host require https in --member")
	case https && (f.caFile == "" || certificate != key || !certificate && !f.verifyHost):
		return errors.New("--member with https requires --cacert, --cert and --key; with --verify-host, you may omit " +
			"both --cert and --key")
	}
	return nil
}

// login returns the user to log in as, or nil.
func (f *memberFlags) login() (*etcd.Login, error) {
	switch {
	case f.user == "" && f.passwordFile == "":
		return nil, nil
	case f.user == "" || f.passwordFile == "":
		return nil, usageError{errors.New("--user and --password-file must be set together")}
	}
	password, err := os.ReadFile(f.passwordFile)
	if err != nil {
		return nil, usageError{fmt.Errorf("--password-file: %w", err)}
	}
	return &etcd.Login{User: f.user, Password: strings.TrimRight(string(password), "\r\n")}, nil
}

// checkNone rejects flags that are valid only with --member.
func (f *memberFlags) checkNone() error {
	if f.anyFile() || f.verifyHost || f.user != "" || f.passwordFile != "" {
		return usageError{errors.New("--cacert, --cert, --key, --verify-host, --user and --password-file require " +
			"--member")}
	}
	return nil
}

func (f *memberFlags) anyFile() bool { return f.caFile != "" || f.cert != "" || f.keyFile != "" }

// parseMember parses NAME=URL.
func parseMember(text string) (name, address, scheme string, err error) {
	name, rest, _ := strings.Cut(text, "=")
	u, err := url.Parse(rest)
	if err != nil || !store.IsName(name) || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return "", "", "", fmt.Errorf("--member %s: expected NAME=https://HOST:2379, where NAME is the name of the "+
			"member's pod",
			withoutSecrets(text))
	}
	port := u.Port()
	if port == "" {
		port = "2379"
	}
	return name, net.JoinHostPort(u.Hostname(), port), u.Scheme, nil
}

// withoutSecrets returns the quoted value of --member, omitting parts that may contain a password or a token.
func withoutSecrets(text string) string {
	if at := strings.LastIndex(text, "@"); at >= 0 {
		name, _, _ := strings.Cut(text, "=")
		if !store.IsName(name) {
			name = ""
		}
		text = name + "=…" + text[at:]
	}
	if end := strings.IndexAny(text, "?#"); end >= 0 {
		text = text[:end+1] + "…"
	}
	return fmt.Sprintf("%.100q", text)
}

func (f *memberFlags) readTLS() (*etcd.TLS, error) {
	var read [3][]byte
	for i, file := range []struct{ flag, name string }{{"cacert", f.caFile}, {"cert", f.cert}, {"key", f.keyFile}} {
		if file.name == "" {
			continue
		}
		content, err := os.ReadFile(file.name)
		if err != nil {
			return nil, usageError{fmt.Errorf("--%s: %w", file.flag, err)}
		}
		read[i] = content
	}
	return &etcd.TLS{CA: read[0], Cert: read[1], Key: read[2], Anonymous: f.cert == ""}, nil
}
