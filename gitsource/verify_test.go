package gitsource

import (
	"bytes"
	"compress/zlib"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/signature"
)

// signer signs as git does with an SSH key, but without ssh-keygen. Signatures by the real ssh-keygen and gpg are
// tested in gitsource/signature.
type signer struct{ ssh.Signer }

func newSigner(t testing.TB, seed byte) signer {
	t.Helper()
	key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return signer{key}
}

func (s signer) armored(t testing.TB, payload string) string {
	t.Helper()
	signature, err := sshsig.Sign(strings.NewReader(payload), s, sshsig.HashSHA512, "git")
	if err != nil {
		t.Fatal(err)
	}
	return string(sshsig.Armor(signature))
}

// keys returns the signer's public key, loaded from a file as from a mounted Secret.
func (s signer) keys(t testing.TB) signature.Keys {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.sshpub")
	if err := os.WriteFile(file, ssh.MarshalAuthorizedKey(s.PublicKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := signature.ReadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// object stores raw as an object without checks, and returns its hash.
func (r *repository) object(kind, raw string) string {
	r.T.Helper()
	cmd := exec.CommandContext(r.T.Context(), "git", "hash-object", "-t", kind, "-w", "--stdin", "--literally")
	cmd.Dir, cmd.Stdin = r.Dir, strings.NewReader(raw)
	hash, err := cmd.Output()
	if err != nil {
		r.T.Fatal(err)
	}
	return strings.TrimSpace(string(hash))
}

// raw returns the raw content of an object.
func (r *repository) raw(kind, name string) string {
	r.T.Helper()
	cmd := exec.CommandContext(r.T.Context(), "git", "cat-file", kind, name)
	cmd.Dir = r.Dir
	raw, err := cmd.Output()
	if err != nil {
		r.T.Fatal(err)
	}
	return string(raw)
}

// declareSigned creates a signed commit that declares a cluster with the given name, and returns the commit.
func (r *repository) declareSigned(s signer, name string) string {
	r.T.Helper()
	raw := r.raw("commit", r.Declare(name))
	head, message, _ := strings.Cut(raw, "\n\n")
	folded := strings.ReplaceAll(strings.TrimSuffix(s.armored(r.T, raw), "\n"), "\n", "\n ")
	commit := r.object("commit", head+"\ngpgsig "+folded+"\n\n"+message)
	r.Git("reset", "--quiet", "--hard", commit)
	return commit
}

// tagSigned creates a signed tag for name.
func (r *repository) tagSigned(s signer, tag, kind, name string) string {
	r.T.Helper()
	raw := fmt.Sprintf("object %s\ntype %s\ntag %s\ntagger a <a@example.com> 1 +0000\n\nx\n", r.Git("rev-parse", name), kind, tag)
	hash := r.object("tag", raw+s.armored(r.T, raw))
	r.Git("update-ref", "refs/tags/"+tag, hash)
	return hash
}

// signedRevisions returns a repository with signed and unsigned revisions. The cluster in each revision is named after
// the kind of signature.
func signedRevisions(t testing.TB) (r *repository, trusted, stranger signer) {
	t.Helper()
	r, trusted, stranger = newRepository(t), newSigner(t, 1), newSigner(t, 2)
	r.Declare("unsigned")
	r.Git("branch", "unsigned")
	r.tagSigned(trusted, "v1.0.0", "commit", "HEAD")
	r.declareSigned(stranger, "strange")
	r.Git("branch", "strange")
	r.tagSigned(stranger, "v3.0.0", "commit", "HEAD")
	r.declareSigned(trusted, "signed")
	r.Git("tag", "light")
	r.Git("tag", "--annotate", "--message=x", "annotated")
	nested := r.tagSigned(trusted, "v1.1.0", "commit", "HEAD")
	r.tagSigned(trusted, "nested", "tag", nested)
	r.Git("update-ref", "refs/tags/v2.0.0", nested)
	r.Git("update-ref", "refs/elsewhere/v1.1.0", nested)
	return r, trusted, stranger
}

func TestTrustedSignaturesAreAccepted(t *testing.T) {
	r, trusted, _ := signedRevisions(t)
	fingerprint := ssh.FingerprintSHA256(trusted.PublicKey())
	for where, location := range map[string]string{"local": r.Dir, "http": r.Serve()} {
		for name, c := range map[string]struct {
			mode    signature.Mode
			s       refs.Selector
			cluster string
		}{
			"HEAD":                           {"", refs.Selector{}, "signed"},
			"branch":                         {signature.Commit, refs.Selector{Branch: "main"}, "signed"},
			"commit":                         {signature.Commit, refs.Selector{Commit: r.Git("rev-parse", "main")}, "signed"},
			"lightweight tag":                {signature.Commit, refs.Selector{Tag: "light"}, "signed"},
			"unsigned tag":                   {signature.Commit, refs.Selector{Tag: "annotated"}, "signed"},
			"signed tag of unsigned commit":  {signature.Tag, refs.Selector{Tag: "v1.0.0"}, "unsigned"},
			"range of versions":              {signature.Tag, refs.Selector{SemVer: "~1.0"}, "unsigned"},
			"tag in full":                    {signature.Tag, refs.Selector{Name: "refs/tags/v1.0.0"}, "unsigned"},
			"signed tag of a signed commit":  {signature.TagAndCommit, refs.Selector{Tag: "v1.1.0"}, "signed"},
			"another reference to that very": {signature.Commit, refs.Selector{Name: "refs/elsewhere/v1.1.0"}, "signed"},
		} {
			t.Run(where+"/"+name, func(t *testing.T) {
				desired, err := Fetch(t.Context(), Options{Location: location, Selector: c.s, Verify: Verification{Mode: c.mode, Keys: trusted.keys(t)}})
				if err != nil {
					t.Fatal(err)
				}
				if desired.Revision.Signer != fingerprint {
					t.Errorf("signed by %q, want %s", desired.Revision.Signer, fingerprint)
				}
				wantClusters(t, desired, c.cluster)
			})
		}
	}
}

func TestUntrustedSignaturesAreRefused(t *testing.T) {
	r, trusted, stranger := signedRevisions(t)
	who := ssh.FingerprintSHA256(stranger.PublicKey())
	for where, location := range map[string]string{"local": r.Dir, "http": r.Serve()} {
		for name, c := range map[string]struct {
			mode signature.Mode
			s    refs.Selector
			is   error
			want string
		}{
			"unsigned":        {signature.Commit, refs.Selector{Branch: "unsigned"}, ErrSource, "verify the commit: it is not signed"},
			"by a stranger":   {signature.Commit, refs.Selector{Branch: "strange"}, ErrSource, "verify the commit: it is signed with the SSH key " + who + ", which is not one of the trusted keys"},
			"signed tag only": {signature.TagAndCommit, refs.Selector{Tag: "v1.0.0"}, ErrSource, "verify the commit: it is not signed"},
			"tag for commit":  {signature.Commit, refs.Selector{Tag: "v1.0.0"}, ErrSource, "verify the commit: it is not signed"},
			"commit only":     {signature.TagAndCommit, refs.Selector{Tag: "annotated"}, ErrSource, "verify the tag: it is not signed"},
			"tag by stranger": {signature.Tag, refs.Selector{Tag: "v3.0.0"}, ErrSource, "verify the tag: it is signed with the SSH key " + who},
			"republished":     {signature.Tag, refs.Selector{Tag: "v2.0.0"}, ErrSource, `verify the tag: it was created as the tag "v1.1.0", not as "v2.0.0"`},
			"as the highest":  {signature.Tag, refs.Selector{SemVer: "~2.0"}, ErrSource, `verify the tag: it was created as the tag "v1.1.0", not as "v2.0.0"`},
			"lightweight":     {signature.Tag, refs.Selector{Tag: "light"}, ErrSource, "verify the tag: it is lightweight and cannot be signed; create it with git tag --sign"},
			"nested":          {signature.Tag, refs.Selector{Tag: "nested"}, ErrSource, "verify the tag: it is a tag of a tag"},
			"nested commit":   {signature.Commit, refs.Selector{Tag: "nested"}, ErrSource, "verify the tag: it is a tag of a tag"},
			"branch as a tag": {signature.Tag, refs.Selector{Branch: "main"}, ErrOptions, `to verify the signature of a tag, name the tag or a range of versions, not the branch "main"`},
			"HEAD as a tag":   {signature.TagAndCommit, refs.Selector{}, ErrOptions, "not the commit at HEAD"},
			"no tag":          {signature.Tag, refs.Selector{Name: "refs/elsewhere/v1.1.0"}, ErrOptions, `not the reference "refs/elsewhere/v1.1.0"`},
			"commit as a tag": {signature.Tag, refs.Selector{Commit: strings.Repeat("0", 40)}, ErrOptions, "not the commit 0000"},
			"no such mode":    {"head", refs.Selector{}, ErrOptions, `"head" cannot be verified: expected commit, tag or tag-and-commit`},
			"missing":         {signature.Commit, refs.Selector{Commit: strings.Repeat("0123", 10)}, ErrSource, "does not have the commit " + strings.Repeat("0123", 10)},
		} {
			t.Run(where+"/"+name, func(t *testing.T) {
				wantError(t, Options{Location: location, Selector: c.s, Verify: Verification{Mode: c.mode, Keys: trusted.keys(t)}}, c.is, c.want)
			})
		}
	}
	wantError(t, Options{Location: r.Dir, Verify: Verification{Mode: signature.Commit}}, ErrSource, "no keys to verify signatures")
}

func TestPlainDirectoryCannotBeVerified(t *testing.T) {
	wantError(t, Options{Location: t.TempDir(), Verify: Verification{Keys: newSigner(t, 1).keys(t)}}, ErrSource, "is not a repository: its content is not signed")
}

// TestSignedTagMustNameCommit checks that the target of a tag with a trusted signature is still checked: it must be a
// commit, regardless of the type in the tag.
func TestSignedTagMustNameCommit(t *testing.T) {
	r, trusted := newRepository(t), newSigner(t, 1)
	r.Declare("a")
	r.tagSigned(trusted, "tree", "commit", "HEAD^{tree}")
	wantError(t, Options{Location: r.Dir, Selector: refs.Selector{Tag: "tree"}, Verify: Verification{Mode: signature.Tag, Keys: trusted.keys(t)}}, ErrSource, "is a tree, not a commit")
}

// TestVerifiedObjectsMustMatchTheirHashes checks that a signature on a local repository covers its files only if the
// objects match their hashes.
func TestVerifiedObjectsMustMatchTheirHashes(t *testing.T) {
	r, trusted := newRepository(t), newSigner(t, 1)
	commit := r.declareSigned(trusted, "signed")
	o := Options{Location: r.Dir, Verify: Verification{Keys: trusted.keys(t)}}
	other := gittest.ClusterNamed("forged")
	evil := r.object("blob", other)
	for _, name := range []string{"HEAD:cluster.yaml", "HEAD^{tree}", "HEAD"} {
		hash := r.Git("rev-parse", name)
		kind := r.Git("cat-file", "-t", hash)
		file := filepath.Join(r.Dir, ".git", "objects", hash[:2], hash[2:])
		honest, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content := other
		switch kind {
		case "tree":
			content = "100644 cluster.yaml\x00" + string(hexBytes(t, evil))
		case "commit":
			content = strings.Replace(r.raw("commit", hash), "author a", "author b", 1)
		}
		if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, deflated(t, kind, content), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := Fetch(t.Context(), Options{Location: r.Dir}); err != nil {
			t.Errorf("%s: the repository is trusted without verification: %v", kind, err)
		}
		wantForged(t, o, hash)
		if err := os.WriteFile(file, honest, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	desired, err := Fetch(t.Context(), o)
	if err != nil || desired.Revision.Commit != commit {
		t.Errorf("revision %s, %v", desired.Revision, err)
	}
}

// wantForged requires either an error or a problem that names the object. An unreadable file is reported as a problem.
func wantForged(t testing.TB, o Options, hash string) {
	t.Helper()
	desired, err := Fetch(t.Context(), o)
	said := fmt.Sprint(desired.Problems, err)
	if !strings.Contains(said, hash+" does not match its hash") || len(desired.Clusters) > 0 {
		t.Errorf("clusters %d, problems %v, error %v", len(desired.Clusters), desired.Problems, err)
	}
}

func hexBytes(t testing.TB, hash string) []byte {
	t.Helper()
	var raw []byte
	if _, err := fmt.Sscanf(hash, "%x", &raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

func deflated(t testing.TB, kind, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, err := w.Write(slices.Concat(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), []byte(content)))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCommitHashSelectsNoTag checks that Selector.Commit selects only commits: the hash of an annotated tag is
// rejected.
func TestCommitHashSelectsNoTag(t *testing.T) {
	r := newRepository(t)
	commit := r.Declare("a")
	r.Git("tag", "--annotate", "--message", "x", "v1")
	tag := r.Git("rev-parse", "v1")
	for _, location := range []string{r.Dir, r.Serve()} {
		wantClusters(t, fetched(t, new(Reader), Options{Location: location, Selector: refs.Selector{Commit: commit}}), "a")
		wantError(t, Options{Location: location, Selector: refs.Selector{Commit: tag}}, ErrSource, tag+" is a tag, not a commit; the tag points to the commit "+commit)
	}
}
