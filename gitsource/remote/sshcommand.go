package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"quorate.dev/quorate/internal/boundedtext"
)

// sshCommand is a running git-upload-pack.
type sshCommand struct {
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	// words is the beginning of the command's error output.
	words boundedtext.Head
}

func (s *sshSession) start() (*sshCommand, error) {
	session, err := s.client.NewSession()
	if err != nil {
		return nil, err
	}
	c := &sshCommand{session: session}
	session.Stderr = &c.words
	if c.in, err = session.StdinPipe(); err == nil {
		c.out, err = session.StdoutPipe()
	}
	if err == nil {
		err = session.Start(s.command)
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	return c, nil
}

func (c *sshCommand) bounded(bound int64, exceeded error) io.Reader {
	return &bounded{Reader: c.out, left: bound, exceeded: exceeded}
}

func (c *sshCommand) send(request *packp.UploadPackRequest) error {
	var wanted bytes.Buffer
	if err := request.UploadRequest.Encode(&wanted); err != nil {
		return err
	}
	if err := request.UploadHaves.Encode(&wanted, false); err != nil {
		return err
	}
	if err := pktline.NewEncoder(&wanted).EncodeString("done\n"); err != nil {
		return err
	}
	if _, err := wanted.WriteTo(c.in); err != nil {
		return err
	}
	return c.in.Close()
}

// explain explains why a command did not send references. It does not repeat the command's output.
func (c *sshCommand) explain(err error) error {
	if said, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		_, _ = c.words.Write([]byte(said.Text))
	} else if !errors.Is(err, packp.ErrEmptyInput) {
		c.session.Close()
		return err
	}
	c.in.Close()
	ended, _ := errors.AsType[*ssh.ExitError](c.session.Wait())
	switch {
	case c.sayNotFound():
		return transport.ErrRepositoryNotFound
	case ended != nil && ended.ExitStatus() == 127:
		return explainedError{errors.New("the host does not have git-upload-pack, which serves git repositories")}
	case ended != nil:
		return explainedError{fmt.Errorf("the host accepted the key, but git-upload-pack exited with status %d: "+
			"check the path, and whether the key has read access", ended.ExitStatus())}
	}
	return err
}

// sayNotFound reports whether the command's output is a message of git or a git host for a repository that does not
// exist or is not visible.
func (c *sshCommand) sayNotFound() bool {
	text := strings.ToLower(c.words.String())
	for _, phrase := range []string{
		"does not appear to be a git repository", "not a git repository", "repository not found", "no such repository",
		"does not exist", "could not be found", "access denied",
	} {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// sshAnswer is the response to a request. Close stops watching the context.
type sshAnswer struct {
	io.Reader
	command *sshCommand
	callOff func()
}

// Close implements io.Closer.
func (a *sshAnswer) Close() error {
	a.callOff()
	_ = a.command.session.Close()
	return nil
}

// shellQuote quotes an argument as git does, for shells and for git-shell.
func shellQuote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}
