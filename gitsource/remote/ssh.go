package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
)

// sshSession runs git-upload-pack over its own connection. Unlike go-git's session, it does not use ~/.ssh or an agent,
// ends with the context, and limits what it reads.
type sshSession struct {
	connection net.Conn
	client     *ssh.Client
	command    string
	// asked is a command that has sent its references and is waiting for a request.
	asked  *sshCommand
	limits Limits
}

// sshPort is the default port for ssh.
const sshPort = "22"

// openSSH connects to the server, verifies its host key, and authenticates the client.
func openSSH(ctx context.Context, r Repository, address *url.URL) (*sshSession, error) {
	host := net.JoinHostPort(strings.ToLower(address.Hostname()), orDefault(address.Port(), sshPort))
	config, seen, err := r.Auth.sshConfig(address, host)
	if err != nil {
		return nil, err
	}
	connection, err := r.dial(ctx, host)
	if err != nil {
		return nil, err
	}
	defer closeAtEnd(ctx, connection)()
	c, channels, requests, err := ssh.NewClientConn(connection, host, config)
	if err != nil {
		connection.Close()
		return nil, seen.explain(err, config.HostKeyAlgorithms, r.Auth)
	}
	return &sshSession{
		limits:     r.Limits.OrDefault(),
		connection: connection,
		client:     ssh.NewClient(c, channels, requests),
		command:    transport.UploadPackServiceName + " " + shellQuote(address.Path),
	}, nil
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// closeAtEnd closes c when the context ends, so that pending reads and writes return. callOff prevents that.
func closeAtEnd(ctx context.Context, c io.Closer) (callOff func()) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return func() { stop() }
}

// signer returns the private key. Its errors never repeat the key.
func (a Auth) signer() (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(a.Identity)
	if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		passphrase := orDefault(a.Passphrase, a.Password)
		if passphrase == "" {
			return nil, errors.New("identity is encrypted, but no passphrase is set")
		}
		if signer, err = ssh.ParsePrivateKeyWithPassphrase(a.Identity, []byte(passphrase)); err != nil {
			return nil, errors.New("identity cannot be decrypted with the passphrase")
		}
	}
	if err != nil {
		return nil, errors.New("identity is not a private key in OpenSSH or PEM format")
	}
	return signer, nil
}

// handshake records what is known about a server.
type handshake struct {
	host, user string
	known      knownHosts
	// refused is the reason why the host is not trusted. trusted is set if the host is trusted.
	refused error
	trusted bool
}

func (a Auth) sshConfig(address *url.URL, host string) (*ssh.ClientConfig, *handshake, error) {
	signer, err := a.signer()
	if err != nil {
		return nil, nil, explainedError{err}
	}
	known, err := readKnownHosts(a.KnownHosts)
	if err != nil {
		return nil, nil, explainedError{err}
	}
	seen := &handshake{host: host, user: orGit(orDefault(address.User.Username(), a.Username)), known: known}
	config := &ssh.ClientConfig{
		User:              seen.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyAlgorithms: known.algorithms(host),
		HostKeyCallback: func(name string, at net.Addr, key ssh.PublicKey) error {
			seen.refused = known.check(name, at, key)
			seen.trusted = seen.refused == nil
			return seen.refused
		},
	}
	return config, seen, nil
}

// explain explains why there is no connection.
func (h *handshake) explain(err error, algorithms []string, auth Auth) error {
	if h.refused != nil {
		return explainedError{h.refused}
	}
	if none, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok {
		if none.What == "host key" {
			return explainedError{fmt.Errorf("the host %s does not offer any of the key types that %s lists for it "+
				"(%s); ask its administrators for its keys", h.host, h.known.path, strings.Join(algorithms, ", "))}
		}
		return explainedError{fmt.Errorf("the host %s and quorate have no %s in common; "+
			"the host's algorithms are outdated",
			h.host, none.What)}
	}
	if h.trusted && strings.Contains(err.Error(), "unable to authenticate") {
		key := "the key"
		if signer, err := auth.signer(); err == nil {
			key = "the key " + fingerprint(signer.PublicKey())
		}
		return explainedError{fmt.Errorf("the host %s rejected %s for the user %s; add its public key to the "+
			"repository or to a user of the host", h.host, key, h.user)}
	}
	return err
}

// AdvertisedReferences implements transport.UploadPackSession.
func (s *sshSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// AdvertisedReferencesContext starts git-upload-pack and reads its references.
func (s *sshSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	defer closeAtEnd(ctx, s.connection)()
	asked, err := s.start()
	if err != nil {
		return nil, err
	}
	references := packp.NewAdvRefs()
	err = references.Decode(asked.bounded(s.limits.RefsBytes, refsTooLarge(s.limits.RefsBytes)))
	switch {
	case errors.Is(err, packp.ErrEmptyAdvRefs) || err == nil && references.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		return nil, asked.explain(err)
	}
	transport.FilterUnsupportedCapabilities(references.Capabilities)
	s.asked = asked
	return references, nil
}

// UploadPack requests objects. The command that has sent its references serves one request. Each further request starts
// another command.
func (s *sshSession) UploadPack(
	ctx context.Context, request *packp.UploadPackRequest,
) (*packp.UploadPackResponse, error) {
	if request.IsEmpty() {
		return nil, transport.ErrEmptyUploadPackRequest
	}
	if err := request.Validate(); err != nil {
		return nil, err
	}
	if s.asked == nil {
		if _, err := s.AdvertisedReferencesContext(ctx); err != nil {
			return nil, err
		}
	}
	asked := s.asked
	s.asked = nil
	answer := &sshAnswer{Reader: asked.bounded(s.limits.PackBytes, packTooLarge(s.limits.PackBytes)), command: asked,
		callOff: closeAtEnd(ctx, s.connection)}
	if err := asked.send(request); err != nil {
		answer.Close()
		return nil, err
	}
	response := packp.NewUploadPackResponse(request)
	if err := response.Decode(answer); err != nil {
		answer.Close()
		return nil, err
	}
	return response, nil
}

// Close closes the connection. If a command is still waiting for a request, Close tells the command that no request
// will follow, but does not wait for it to end.
func (s *sshSession) Close() error {
	if s.asked != nil {
		timer := time.AfterFunc(time.Second, func() { s.connection.Close() })
		_, _ = s.asked.in.Write(pktline.FlushPkt)
		timer.Stop()
	}
	return s.client.Close()
}
