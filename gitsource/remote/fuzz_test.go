package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"quorate.dev/quorate/gitsource/pack"
)

// saying is a session with a server that always sends the same response.
type saying struct {
	list   *packp.AdvRefs
	answer []byte
}

func (s saying) AdvertisedReferences() (*packp.AdvRefs, error) { return s.list, nil }

func (s saying) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	return s.list, nil
}

func (s saying) UploadPack(_ context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	response := packp.NewUploadPackResponse(request)
	return response, response.Decode(io.NopCloser(bytes.NewReader(s.answer)))
}

func (s saying) Close() error { return nil }

// FuzzFetch checks that fetching returns a result or a printable error, for any response of a server.
func FuzzFetch(f *testing.F) {
	commit := strings.Repeat("a", 40)
	line := commit + " HEAD\x00ofs-delta shallow side-band-64k symref=HEAD:refs/heads/main\n"
	list := fmt.Appendf(nil, "%04x%s0000", len(line)+4, line)
	f.Add(list, []byte("00000008NAK\n"))
	f.Add(list, []byte("0034shallow "+commit+"00000008NAK\n0021\x01PACK\x00\x00\x00\x02\x00\x00\x00\x000123456789abcdef"))
	f.Add(list, []byte("00000008NAK\n0011\x03\x1b[2Jgo away\n"))
	f.Add(list, []byte("00000038ACK "+commit+" common\n0008NAK\n000a\x01PACK\n"))
	f.Fuzz(func(t *testing.T, list, answer []byte) {
		advertised := packp.NewAdvRefs()
		if err := advertised.Decode(bytes.NewReader(list)); err != nil {
			return
		}
		s := &Session{
			repository: Repository{URL: "https://example.com/x.git", Limits: Limits{PackBytes: 1 << 16, Pack: pack.Limits{Objects: 100, InflatedBytes: 1 << 20}}},
			upload:     saying{advertised, answer}, advertised: advertised, close: func() {}, elsewhere: func() string { return "" }, secrets: Auth{}.secrets,
		}
		if head := s.References().HeadName; strings.ContainsAny(head.String(), "\x1b\n") {
			t.Errorf("HEAD is %q", head)
		}
		store, err := s.Fetch(t.Context(), plumbing.NewHash(commit))
		if err == nil {
			store.Close()
			return
		}
		if strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%q prints the server's text", err)
		}
	})
}
