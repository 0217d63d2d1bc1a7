package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// genuine returns the object of a signed case, with the keys and the time for verification.
func genuine(t testing.TB, name string) ([]byte, Keys, time.Time) {
	t.Helper()
	archive := readArchive(t, filepath.Join(archivesDir, name+".txtar"))
	if !strings.HasPrefix(fileIn(archive, "want"), "signer: ") {
		t.Fatalf("%s is not signed by an allowed signer", name)
	}
	keys := keysIn(t, readArchive(t, filepath.Join(archivesDir, "keys.txtar")), "pgp.asc", "rsa.asc", "ed25519.sshpub", "ecdsa.sshpub", "rsassh.sshpub")
	now, err := time.Parse(time.RFC3339, testNow)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(fileIn(archive, "object")), keys, now
}

// replacing returns a function that replaces the first occurrence of old.
func replacing(old, with string) func(string) string {
	return func(object string) string { return strings.Replace(object, old, with, 1) }
}

const x509 = "-----BEGIN SIGNED MESSAGE-----\n MIIBAA==\n -----END SIGNED MESSAGE-----"

// TestTamperedCommitsAreRefused checks that commits that git does not create are rejected. Each is a signed commit with
// one change.
func TestTamperedCommitsAreRefused(t *testing.T) {
	const tree = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
	other := strings.Replace(tree, "4b82", "4b83", 1)
	for name, c := range map[string]struct {
		change func(string) string
		want   string
	}{
		"message changed":     {replacing("Declare", "Destroy"), errTampered.Error()},
		"tree changed":        {replacing(tree, other), errTampered.Error()},
		"author changed":      {replacing("author a", "author b"), errTampered.Error()},
		"parent added":        {replacing("author", "parent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor"), errTampered.Error()},
		"encoding added":      {replacing("gpgsig", "encoding latin1\ngpgsig"), errTampered.Error()},
		"text appended":       {func(s string) string { return s + "x" }, errTampered.Error()},
		"newline cut":         {func(s string) string { return strings.TrimSuffix(s, "\n") }, errTampered.Error()},
		"two trees":           {replacing(tree, tree+other), "it is ambiguous: its headers are not tree, parents, author and committer, in this order"},
		"tree again":          {replacing("gpgsig", other+"gpgsig"), "it is ambiguous: its header tree is duplicated or out of place"},
		"parent again":        {replacing("gpgsig", strings.Replace(tree, "tree", "parent", 1)+"gpgsig"), "it is ambiguous: its header parent is duplicated or out of place"},
		"author again":        {replacing("gpgsig", "author b <b@example.com> 1 +0000\ngpgsig"), "it is ambiguous: its header author is duplicated or out of place"},
		"tree not first":      {replacing(tree, "x y\n"+tree), "it is ambiguous: its headers are not tree, parents, author and committer, in this order"},
		"tree is short":       {replacing(tree, "tree 4b825dc\n"), "it is ambiguous: its header tree is not a hash"},
		"tree in capitals":    {replacing(tree, strings.ToUpper(tree[5:])), "it is ambiguous: one of its header lines is not a valid header"},
		"tree continued":      {replacing(tree, tree+" x\n"), "it is ambiguous: its header tree has more than one line"},
		"author continued":    {replacing("committer", " x\ncommitter"), "it is ambiguous: its header author has more than one line"},
		"continuation first":  {func(s string) string { return " x\n" + s }, "it is ambiguous: one of its header lines is not a valid header"},
		"header of no name":   {replacing("gpgsig", "\x01x y\ngpgsig"), "it is ambiguous: one of its header lines is not a valid header"},
		"header of no value":  {replacing("gpgsig", "x\ngpgsig"), "it is ambiguous: one of its header lines is not a valid header"},
		"header after":        {replacing("\n\n", "\nencoding latin1\n\n"), "it is ambiguous: it has a header after the signature"},
		"tree after":          {replacing("\n\n", "\n"+other+"\n"), "it is ambiguous: it has a header after the signature"},
		"no end of headers":   {replacing("\n\n", "\n"), "it is ambiguous: its headers do not end with an empty line"},
		"nothing":             {func(string) string { return "" }, "it is ambiguous: its headers do not end with an empty line"},
		"NUL in the message":  {replacing("Declare", "\x00Declare"), "it is ambiguous: it contains a NUL byte"},
		"NUL in a header":     {replacing("author a", "author a\x00"), "it is ambiguous: it contains a NUL byte"},
		"too large":           {func(s string) string { return s + strings.Repeat("x", maxBytes) }, "it is larger than 1024 KiB"},
		"SHA-256 signature":   {replacing("gpgsig", "gpgsig-sha256"), "it is ambiguous: it has the signature of a SHA-256 repository (gpgsig-sha256)"},
		"both signatures":     {replacing("gpgsig", "gpgsig-sha256 x\ngpgsig"), "it is ambiguous: it has the signature of a SHA-256 repository (gpgsig-sha256)"},
		"two headers":         {func(s string) string { return twice(s, "\ngpgsig ") }, errSeveral.Error()},
		"two headers, apart":  {func(s string) string { return twice(s, "\nencoding x\ngpgsig ") }, "it is ambiguous: it has a header after the signature"},
		"signature is empty":  {func(s string) string { return signedWith(s, "") }, errUnsigned.Error()},
		"signature is spaces": {func(s string) string { return signedWith(s, "  \n ") }, errFormat.Error()},
		"X.509":               {func(s string) string { return signedWith(s, x509) }, errX509.Error()},
		"another format":      {func(s string) string { return signedWith(s, "-----BEGIN CMS-----\n MIIB\n -----END CMS-----") }, errFormat.Error()},
		"text before":         {replacing("gpgsig ", "gpgsig x\n "), errFormat.Error()},
		"garbage after":       {replacing("\n\n", "\n x\n\n"), errAfter.Error()},
		"armor does not end":  {replacing("-----END ", "-----ENDE "), errNoEnd.Error()},
		"armor ends for PGP":  {replacing("-----END SSH", "-----END PGP"), errNoEnd.Error()},
		"armor is damaged":    {replacing(" AAAA", " A!AA"), "its signature cannot be read: its armor is damaged"},
		"armor of nothing": {func(s string) string {
			return signedWith(s, "-----BEGIN SSH SIGNATURE-----\n -----END SSH SIGNATURE-----")
		}, "its signature cannot be read: ssh: parse error in message type 0"},
		"no SSHSIG": {func(s string) string {
			return signedWith(s, "-----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----")
		}, "its signature cannot be read: ssh: short read"},
	} {
		t.Run(name, func(t *testing.T) {
			object, keys, now := genuine(t, "commit_ssh_ed25519")
			changed := c.change(string(object))
			if changed == string(object) {
				t.Fatal("nothing is changed")
			}
			wantRefused(t, c.want, func() (Signer, error) { return keys.Commit([]byte(changed), now) })
		})
	}
}

// twice repeats the signature of a commit. as is the text between the two signatures.
func twice(commit, as string) string {
	before, after, _ := strings.Cut(commit, "gpgsig ")
	signature, message, _ := strings.Cut(after, "\n\n")
	return before + "gpgsig " + signature + as + signature + "\n\n" + message
}

// signedWith replaces the signature of a commit.
func signedWith(commit, signature string) string {
	before, after, _ := strings.Cut(commit, "gpgsig ")
	_, message, _ := strings.Cut(after, "\n\n")
	return before + "gpgsig " + signature + "\n\n" + message
}

func wantRefused(t *testing.T, want string, verify func() (Signer, error)) {
	t.Helper()
	signer, err := verify()
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
	if signer != (Signer{}) {
		t.Errorf("a signer with an error: %v", signer)
	}
}

func TestTamperedPGPSignaturesAreRefused(t *testing.T) {
	object, keys, now := genuine(t, "commit_pgp_pgp")
	for name, c := range map[string]struct {
		change func(string) string
		want   string
	}{
		"message changed":        {replacing("Declare", "Destroy"), errTampered.Error()},
		"garbage after":          {replacing("\n\n", "\n x\n\n"), errAfter.Error()},
		"garbage after checksum": {replacing("\n -----END", "\n AAAA\n -----END"), errAfter.Error()},
		"garbage in the armor":   {replacing("\n =", "\n !\n ="), "its signature cannot be read: unexpected EOF"},
		"armor of nothing": {
			func(s string) string {
				return signedWith(s, "-----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----")
			}, "its signature cannot be read: EOF",
		},
		"no empty line": {
			func(s string) string {
				return signedWith(s, "-----BEGIN PGP SIGNATURE-----\n AAAA\n -----END PGP SIGNATURE-----")
			}, "its signature cannot be read: EOF",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantRefused(t, c.want, func() (Signer, error) { return keys.Commit([]byte(c.change(string(object))), now) })
		})
	}
}

func TestTamperedTagsAreRefused(t *testing.T) {
	object, keys, now := genuine(t, "tag_ed25519")
	signature := object[bytes.Index(object, []byte("-----BEGIN")):]
	const order = "it is ambiguous: its headers are not object, type, tag and tagger, in this order"
	for name, c := range map[string]struct {
		change func(string) string
		want   string
	}{
		"message changed":        {replacing("Release", "Withdraw"), errTampered.Error()},
		"commit changed":         {replacing("object ", "object 0123456789012345678901234567890123456789\nobject "), order},
		"two commits":            {replacing("type", "object 0123456789012345678901234567890123456789\ntype"), order},
		"two names":              {replacing("tagger", "tag v9\ntagger"), order},
		"no tagger":              {replacing("tagger a <a@example.com> 1772323200 +0000\n", ""), order},
		"header after":           {replacing("\n\n", "\nencoding x\n\n"), order},
		"signature in a header":  {replacing("\n\n", "\ngpgsig x\n\n"), order},
		"object is not a hash":   {replacing("object ", "object x"), "it is ambiguous: its header object is not a hash"},
		"of a blob":              {replacing("type commit", "type blob"), "it does not point to a commit"},
		"name continued":         {replacing("\ntagger", "\n x\ntagger"), "it is ambiguous: its header tag has more than one line"},
		"two signatures":         {func(s string) string { return s + string(signature) }, errSeveral.Error()},
		"PGP and SSH":            {replacing("-----BEGIN", "-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n-----BEGIN"), errSeveral.Error()},
		"text after":             {func(s string) string { return s + "Signed-off-by: a\n" }, errAfter.Error()},
		"quoted before":          {replacing("Release", "Release\n-----BEGIN SIGNED MESSAGE-----\n"), errX509.Error()},
		"signature not at start": {replacing("-----BEGIN", " -----BEGIN"), errUnsigned.Error()},
		"NUL":                    {replacing("Release", "Release\x00"), "it is ambiguous: it contains a NUL byte"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := c.change(string(object))
			if changed == string(object) {
				t.Fatal("nothing is changed")
			}
			wantRefused(t, c.want, func() (Signer, error) { return keys.Tag([]byte(changed), "v1.0.0-ed25519", now) })
		})
	}
}

// TestTarget checks that the target of a signed tag is read strictly and never guessed.
func TestTarget(t *testing.T) {
	object, _, _ := genuine(t, "tag_pgp")
	want := string(object[len("object "):][:40])
	if got, err := Target(object); err != nil || got != want {
		t.Errorf("target %s, %v; want %s", got, err, want)
	}
	commit, _, _ := genuine(t, "commit_pgp_pgp")
	if _, err := Target(commit); !errors.Is(err, errAmbiguous) {
		t.Errorf("a commit is not a tag: %v", err)
	}
}

func TestVerificationFailsWithoutKeys(t *testing.T) {
	for _, name := range []string{"commit_pgp_pgp", "commit_ssh_ed25519"} {
		object, _, now := genuine(t, name)
		if signer, err := (Keys{}).Commit(object, now); err == nil {
			t.Errorf("%s: signed by %s", name, signer)
		}
	}
}

// securityKey signs as a hardware key does, including the hash of its application, its flags and a counter. It does not
// need hardware.
type securityKey struct {
	private ed25519.PrivateKey
	touched bool
}

const application = "ssh:"

func (s securityKey) public(t *testing.T) ssh.PublicKey {
	t.Helper()
	public := s.private.Public().(ed25519.PublicKey)
	key, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Name        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, public, application}))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (s securityKey) sign(t *testing.T, payload []byte) string {
	t.Helper()
	hash := sha512.Sum512(payload)
	data := append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, HashAlgorithm, Hash string }{"git", "", "sha512", string(hash[:])})...)
	flags := byte(0)
	if s.touched {
		flags = 1
	}
	app, message := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	signed := bytes.Join([][]byte{app[:], {flags, 0, 0, 0, 7}, message[:]}, nil)
	blob := sshsig.Signature{
		Version: 1, PublicKey: s.public(t), Namespace: "git", HashAlgorithm: sshsig.HashSHA512,
		Signature: &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(s.private, signed), Rest: []byte{flags, 0, 0, 0, 7}},
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: sshsig.PEMType, Bytes: blob.Marshal()}))
}

func TestSecurityKeyMustBeTouched(t *testing.T) {
	key := securityKey{private: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)), touched: true}
	var keys Keys
	if err := keys.parse("a.sshpub", ssh.MarshalAuthorizedKey(key.public(t))); err != nil {
		t.Fatal(err)
	}
	unsigned := []byte(fileIn(readArchive(t, filepath.Join(archivesDir, "commit_unsigned.txtar")), "object"))
	signer, err := keys.Commit(withSignature(unsigned, key.sign(t, unsigned)), time.Now())
	if err != nil || signer.Fingerprint != ssh.FingerprintSHA256(key.public(t)) {
		t.Errorf("signer %s, %v", signer, err)
	}
	key.touched = false
	wantRefused(t, errTampered.Error(), func() (Signer, error) {
		return keys.Commit(withSignature(unsigned, key.sign(t, unsigned)), time.Now())
	})
}

func TestReadKeys(t *testing.T) {
	archive := readArchive(t, filepath.Join(archivesDir, "keys.txtar"))
	pgp, one := fileIn(archive, "pgp.asc"), fileIn(archive, "ed25519.sshpub")
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"none":               {nil, "no keys found"},
		"unknown name":       {map[string]string{"README": "x"}, "README: its file name does not indicate its format; expected *.asc (PGP), *.sshpub or *.pub (SSH), allowed_signers or *.allowed_signers"},
		"empty PGP":          {map[string]string{"a.asc": ""}, "a.asc: it does not contain a PGP key"},
		"empty SSH":          {map[string]string{"a.sshpub": "# none\n"}, "a.sshpub: it does not contain an SSH key"},
		"PGP in SSH":         {map[string]string{"a.sshpub": pgp}, "a.sshpub: line 1: it is not an SSH public key, or has an unknown type"},
		"SSH in PGP":         {map[string]string{"a.asc": one}, "a.asc: it contains something other than armored public keys; expected the output of gpg --armor --export"},
		"text beside":        {map[string]string{"a.asc": pgp + "x\n"}, "a.asc: it contains something other than armored public keys; expected the output of gpg --armor --export"},
		"does not end":       {map[string]string{"a.asc": pgp[:len(pgp)/2] + "\n"}, "a.asc: its last armored key is truncated"},
		"private PGP":        {map[string]string{"a.asc": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n"}, "a.asc: it contains a private key; verification only needs the public key"},
		"private SSH":        {map[string]string{"a.sshpub": "-----BEGIN OPENSSH PRIVATE KEY-----\n"}, "a.sshpub: it contains a private key; verification only needs the public key"},
		"twice":              {map[string]string{"a.asc": pgp, "b.asc": pgp}, "b.asc: the key FINGERPRINT (pgp <pgp@example.com>) is listed twice; keep only the current copy"},
		"weak PGP":           {map[string]string{"a.asc": fileIn(archive, "weak.asc")}, "RSA with 1024 bits is too weak; the minimum is 2048"},
		"not for signing":    {map[string]string{"a.asc": fileIn(archive, "encrypting.asc")}, "neither the key nor any of its subkeys can sign"},
		"weak SSH":           {map[string]string{"a.sshpub": fileIn(archive, "rsaweak.sshpub")}, "a.sshpub: line 1: RSA with 1024 bits is too weak; the minimum is 2048"},
		"options":            {map[string]string{"a.sshpub": "no-pty " + one}, "a.sshpub: line 1: options are only allowed in an allowed_signers file"},
		"truncated":          {map[string]string{"a.sshpub": "ssh-ed25519 AAAA\n"}, "a.sshpub: line 1: it is not an SSH public key, or has an unknown type"},
		"no principals":      {map[string]string{"allowed_signers": one}, "allowed_signers: line 1: it is not an SSH public key, or has an unknown type"},
		"authority":          {map[string]string{"allowed_signers": "\n* cert-authority " + one}, "allowed_signers: line 2: cert-authority is not supported: list the keys themselves"},
		"unknown option":     {map[string]string{"allowed_signers": `* verify-required="x" ` + one}, `allowed_signers: line 1: unknown option "verify-required"`},
		"bad time":           {map[string]string{"allowed_signers": `* valid-after="yesterday" ` + one}, `allowed_signers: line 1: "yesterday" is not a time; write YYYYMMDD or YYYYMMDDHHMM, in UTC`},
		"time not quoted":    {map[string]string{"allowed_signers": `* valid-after=20260101 ` + one}, `allowed_signers: line 1: the value of valid-after is not in quotes`},
		"negated namespace":  {map[string]string{"allowed_signers": `* namespaces="!git" ` + one}, `allowed_signers: line 1: the namespaces "!git": expected names separated by commas; * and ? are wildcards`},
		"principals unclear": {map[string]string{"allowed_signers": `"a b ` + one}, "allowed_signers: line 1: its principals are not terminated"},
		"all at once":        {map[string]string{"a": "", "b": ""}, "a: its file name does not indicate its format; expected *.asc (PGP), *.sshpub or *.pub (SSH), allowed_signers or *.allowed_signers; b: its file name does not indicate its format; expected *.asc (PGP), *.sshpub or *.pub (SSH), allowed_signers or *.allowed_signers"},
		"too large":          {map[string]string{"a.asc": strings.Repeat("\n", maxKeysBytes+1)}, "a.asc: it is not a file, or is larger than 1024 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeKeys(t, c.files)
			keys, err := ReadKeys(dir)
			want := strings.ReplaceAll(c.want, "FINGERPRINT", keysIn(t, archive, "pgp.asc").String())
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("error %v\nwant  %s", err, want)
			}
			if !keys.Empty() {
				t.Error("keys with an error")
			}
		})
	}
}

func writeKeys(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestReadMountedSecret reads keys from a Secret as the kubelet mounts it: the files are symlinks into a directory that
// is replaced on updates.
func TestReadMountedSecret(t *testing.T) {
	archive := readArchive(t, filepath.Join(archivesDir, "keys.txtar"))
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "..2026_06_01"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..2026_06_01", filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pgp.asc", "ed25519.sshpub", "valid.allowed_signers"} {
		if err := os.WriteFile(filepath.Join(dir, "..data", name), []byte(fileIn(archive, name)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := ReadKeys(dir)
	if err != nil || len(keys.pgp) != 1 || len(keys.ssh) != 2 {
		t.Errorf("keys %s, %v", keys, err)
	}
	one, err := ReadKeys(filepath.Join(dir, "pgp.asc"))
	if err != nil || len(one.pgp) != 1 || len(one.ssh) != 0 {
		t.Errorf("keys %s, %v", one, err)
	}
	if _, err := ReadKeys(filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
