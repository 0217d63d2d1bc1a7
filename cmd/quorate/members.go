package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
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
	// credentials is a directory with files to use instead of the flags above.
	credentials string
}

func (f *memberFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.members, "member", nil,
		"NAME=URL of a member, such as a-0=https://10.0.0.7:2379, instead of finding members through Kubernetes; "+
			"repeat it for each voter, because a majority of the named members must return the same member list. A "+
			"URL without NAME= names the member HOST:PORT and implies --verify-host for it")
	c.Flags().StringVar(&f.caFile, "cacert", "", "PEM file with the CA that signed the certificates of the members "+
		"in --member")
	c.Flags().StringVar(&f.cert, "cert", "", "PEM file with the client certificate for --member")
	c.Flags().StringVar(&f.keyFile, "key", "", "PEM file with the key of --cert")
	c.Flags().BoolVar(&f.verifyHost, "verify-host", false, "for clusters that Quorate did not create: verify "+
		"members' certificates against the hosts in --member, not against pod DNS names")
	c.Flags().StringVar(&f.user, "user", "", "etcd user to log in as, with the role root, if etcd requires a password")
	c.Flags().StringVar(&f.passwordFile, "password-file", "", "file containing the password of --user")
	c.Flags().Var((*filledText)(&f.credentials), "credentials", "directory (a mounted Secret) with the files ca.crt, "+
		"tls.crt, tls.key, username and password, replacing --cacert, --cert, --key, --user and --password-file; "+
		"files may be missing, but https requires ca.crt, and http ignores the certificates")
}

// cluster returns a cluster that consists of the members in the flags. They are expected to be its voters: a single
// member that does not list the others is not backed up.
func (f *memberFlags) cluster(of store.Cluster) (etcd.Cluster, error) {
	c := etcd.Cluster{Namespace: of.Namespace, Name: of.Name}
	addresses := map[string]string{}
	schemes := map[string]bool{}
	verified := true // whether all members' certificates are verified against the hosts in their URLs
	for _, text := range f.members {
		pod, scheme, err := f.parse(text)
		if err != nil {
			return etcd.Cluster{}, usageError{err}
		}
		if slices.ContainsFunc(c.Pods, func(other etcd.Pod) bool { return other.IP == pod.IP }) {
			return etcd.Cluster{}, usageError{fmt.Errorf("--member has the address %s twice", pod.IP)}
		}
		if addresses[pod.Name] != "" {
			return etcd.Cluster{}, usageError{fmt.Errorf("--member names %s twice", pod.Name)}
		}
		addresses[pod.Name], schemes[scheme] = pod.IP, true
		verified = verified && pod.Host != ""
		c.Pods = append(c.Pods, pod)
		c.Voters = append(c.Voters, pod.Name)
	}
	if len(schemes) > 1 {
		return etcd.Cluster{}, usageError{errors.New("--member: some URLs use https, others http")}
	}
	c.Dial = func(ctx context.Context, pod string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addresses[pod])
	}
	err := f.authenticate(&c, schemes["https"], verified)
	return c, err
}

// authenticate sets the certificates and the user for connecting to the members.
func (f *memberFlags) authenticate(c *etcd.Cluster, https, verified bool) (err error) {
	if err := f.checkTLS(https, verified); err != nil {
		return usageError{err}
	}
	if f.credentials != "" {
		return f.readCredentials(c, https, verified)
	}
	if c.Login, err = f.login(); err != nil || !https {
		return err
	}
	c.TLS, err = f.readTLS()
	return err
}

// checkTLS checks the flags for certificates. Quorate's clusters require a client certificate; other clusters may use
// passwords, or no authentication.
func (f *memberFlags) checkTLS(https, verified bool) error {
	certificate, key := f.cert != "", f.keyFile != ""
	switch {
	case f.credentials != "" && (f.anyFile() || f.user != "" || f.passwordFile != ""):
		return errors.New("--credentials cannot be combined with --cacert, --cert, --key, --user or --password-file")
	case !https && (f.anyFile() || f.verifyHost):
		return errors.New("--cacert, --cert, --key and --verify-host require https in --member")
	case https && f.credentials == "" && (f.caFile == "" || certificate != key || !certificate && !verified):
		return errors.New("--member with https requires --cacert, --cert and --key (or --credentials); with " +
			"--verify-host, or without NAME= in --member, you may omit both --cert and --key")
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
	return &etcd.Login{User: f.user, Password: withoutNewline(password)}, nil
}

// withoutNewline returns the content of a file without trailing newlines.
func withoutNewline(content []byte) string { return strings.TrimRight(string(content), "\r\n") }

// checkNone rejects flags that are valid only with --member.
func (f *memberFlags) checkNone() error {
	if f.anyFile() || f.verifyHost || f.user != "" || f.passwordFile != "" || f.credentials != "" {
		return usageError{errors.New("--cacert, --cert, --key, --verify-host, --user, --password-file and " +
			"--credentials require --member")}
	}
	return nil
}

func (f *memberFlags) anyFile() bool { return f.caFile != "" || f.cert != "" || f.keyFile != "" }

// parse parses NAME=URL or URL. Without a name, the member is named after its address. The address cannot be part of a
// pod's DNS name, so the member's certificate is always verified against the host in the URL.
func (f *memberFlags) parse(text string) (pod etcd.Pod, scheme string, err error) {
	name, rest, named := strings.Cut(text, "=")
	if !named {
		rest = text
	}
	u, err := url.Parse(rest)
	if err != nil || named && !store.IsName(name) || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		!named && !memberHost.MatchString(u.Hostname()) || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.Trim(u.Path, "/") != "" {
		return etcd.Pod{}, "", fmt.Errorf("--member %s: expected NAME=https://HOST:2379, where NAME is the name of "+
			"the member's pod, or https://HOST:2379", withoutSecrets(text))
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "2379"))
	if !named {
		return etcd.Pod{Name: address, IP: address, Host: u.Hostname()}, u.Scheme, nil
	}
	pod = etcd.Pod{Name: name, IP: address}
	if f.verifyHost {
		pod.Host = u.Hostname()
	}
	return pod, u.Scheme, nil
}

// memberHost matches hosts that may be used as member names in messages and manifests.
var memberHost = regexp.MustCompile(`^[0-9A-Za-z._:-]{1,253}$`)

// withoutSecrets returns the quoted value of --member, omitting parts that may contain a password or a token.
func withoutSecrets(text string) string {
	name, _, _ := strings.Cut(text, "=")
	if store.IsName(name) {
		name += "="
	} else {
		name = ""
	}
	at, query := strings.LastIndex(text, "@"), strings.IndexAny(text, "?#")
	switch {
	case at >= 0 && query >= 0 && query < at: // what follows the @ may be part of a token
		text = name + "…"
	case at >= 0:
		text = name + "…" + text[at:]
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
