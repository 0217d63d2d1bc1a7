package signature

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// makeCases creates every case that the real tools can create. Cases that these tools refuse to create are in
// hostile_test.go.
func (w *workshop) makeCases() {
	w.makeKeys()
	unsigned := w.commit("")
	w.add(testCase{name: "commit_unsigned", about: "Nobody signed it.", object: unsigned, keys: []string{"pgp.asc", "ed25519.sshpub"}})
	w.goodCommits()
	w.badCommits(unsigned)
	w.merges()
	w.tags()
}

func (w *workshop) makeKeys() {
	for _, name := range []string{"pgp", "stranger"} {
		w.pgpKey(name, "ed25519", "never")
	}
	w.pgpKey("rsa", "rsa2048", "never")
	w.gpg(madeAt, "", "--quick-add-key", w.fingerprint("rsa"), "rsa2048", "sign", "never")
	w.export("rsa")
	w.pgpKey("nistp384", "nistp384", "never")
	w.pgpKey("weak", "rsa1024", "never")
	w.pgpKey("expired", "ed25519", "2026-04-01")
	w.pgpKey("revoked", "ed25519", "never")
	w.gpg(madeAt, "", "--quick-add-key", w.fingerprint("revoked"), "ed25519", "sign", "never")
	w.pgpKey("subrevoked", "ed25519", "never")
	w.gpg(madeAt, "", "--quick-add-key", w.fingerprint("subrevoked"), "ed25519", "sign", "never")
	w.gpg(madeAt, "", "--quick-generate-key", "encrypting <"+address("encrypting")+">", "ed25519", "cert", "never")
	w.gpg(madeAt, "", "--quick-add-key", w.fingerprint("encrypting"), "cv25519", "encr", "never")
	w.export("encrypting")
	w.sshKey("ed25519", "-t", "ed25519")
	w.sshKey("ecdsa", "-t", "ecdsa", "-b", "256")
	w.sshKey("rsassh", "-t", "rsa", "-b", "2048")
	w.sshKey("rsaweak", "-t", "rsa", "-b", "1024")
	w.sshKey("sshstranger", "-t", "ed25519")
	key := strings.Join(strings.Fields(w.read(filepath.Join(w.keys, "ed25519.sshpub")))[:2], " ")
	for name, options := range map[string]string{
		"plain": "", "expired": `valid-before="20260401" `, "later": `valid-after="20260701Z" `, "valid": `valid-after="20260101",valid-before="203001010000",namespaces="git" `,
		"files": `namespaces="file,mail" `,
	} {
		w.put(name+".allowed_signers", "# Who may sign.\n"+address("ed25519")+" "+options+key+"\n")
	}
	w.put("two.allowed_signers", strings.ReplaceAll(w.read(filepath.Join(w.keys, "expired.allowed_signers"))+w.read(filepath.Join(w.keys, "valid.allowed_signers")), "# Who", "\n# Who"))
}

func (w *workshop) goodCommits() {
	for name, about := range map[string]string{
		"pgp": "A PGP key with Ed25519.", "rsa": "A subkey of a PGP key with RSA.", "nistp384": "A PGP key on a curve of NIST.",
	} {
		w.add(testCase{name: "commit_pgp_" + name, about: about, object: w.commit(name), keys: []string{name + ".asc", "stranger.asc", "ed25519.sshpub"}})
	}
	for _, name := range []string{"ed25519", "ecdsa", "rsassh"} {
		w.add(testCase{name: "commit_ssh_" + name, about: "An SSH key.", object: w.commit(name), keys: []string{name + ".sshpub", "pgp.asc"}})
	}
	signed := w.commit("ed25519")
	for name, about := range map[string]string{
		"plain": "An allowed signer.", "expired": "An allowed signer whose key is no longer valid today: the date of the commit, when it was, does not count.",
		"later": "An allowed signer whose key is not valid yet.", "valid": "An allowed signer with all options.",
		"files": "An allowed signer, but not in git.", "two": "A key that is listed twice: one of the lines allows it.",
	} {
		w.add(testCase{name: "allowed_signers_" + name, about: about, object: signed, keys: []string{name + ".allowed_signers"}})
	}
}

func (w *workshop) badCommits(unsigned []byte) {
	trusted := []string{"pgp.asc", "ed25519.sshpub"}
	w.add(testCase{name: "pgp_not_listed", about: "Signed by somebody else.", object: w.commit("stranger"), keys: trusted})
	w.add(testCase{name: "ssh_not_listed", about: "Signed by somebody else.", object: w.commit("sshstranger"), keys: trusted})
	w.add(testCase{
		name: "pgp_expired", about: "The key was valid when the signature was dated, and is not today: whoever finds an old key can date a signature back.",
		object: w.commit("expired"), keys: []string{"expired.asc"},
	})
	w.add(testCase{name: "pgp_not_yet_expired", about: "The same key, while it is valid.", object: w.commit("expired"), keys: []string{"expired.asc"}, now: "2026-03-15T00:00:00Z"})
	w.revoked()
	w.add(testCase{name: "pgp_in_the_future", about: "Dated in the future: a clock is wrong.", object: w.commit("pgp"), keys: trusted, now: "2026-02-01T00:00:00Z"})
	w.add(testCase{
		name: "pgp_before_its_key", about: "Dated before the key was made.", object: w.commit("pgp", "20251201T000000", "--ignore-time-conflict"), keys: trusted,
	})
	w.add(testCase{name: "pgp_signature_expired", about: "The signature says until when it counts.", object: w.commit("pgp", "--default-sig-expire", "2026-04-01"), keys: trusted})
	w.add(testCase{name: "pgp_sha1", about: "SHA-1 can be forged.", object: w.commit("rsa", "--digest-algo", "SHA1"), keys: []string{"rsa.asc"}})
	w.add(testCase{
		name: "pgp_text", about: "A signature over text holds for other line ends too: not over these bytes alone.", object: w.commit("pgp", "--textmode"), keys: trusted,
	})
	w.add(testCase{
		name: "pgp_two_packets", about: "Two signatures in one armor.", keys: trusted,
		object: withSignature(unsigned, w.gpg(signedAt, string(unsigned), "--armor", "--detach-sign", "--local-user", address("pgp"), "--local-user", address("stranger"))),
	})
	once := w.gpg(signedAt, string(unsigned), "--armor", "--detach-sign", "--local-user", address("pgp"))
	w.add(testCase{name: "pgp_two_blocks", about: "Two signatures, one after the other.", keys: trusted, object: withSignature(unsigned, once+once)})
	w.add(testCase{
		name: "pgp_clear_signed", about: "The signature of a message, not of a commit.", keys: trusted,
		object: withSignature(unsigned, w.gpg(signedAt, string(unsigned), "--armor", "--sign", "--local-user", address("pgp"))),
	})
	w.add(testCase{name: "ssh_namespace", about: "A signature over the same bytes, but as a file.", object: withSignature(unsigned, w.sshSign("file", unsigned)), keys: trusted})
	w.add(testCase{name: "ssh_by_hand", about: "The same in the namespace of git is what git makes.", object: withSignature(unsigned, w.sshSign("git", unsigned)), keys: trusted})
	other := bytes.Replace(unsigned, []byte("Declare"), []byte("Destroy"), 1)
	w.add(testCase{name: "ssh_of_another_commit", about: "A signature taken from another commit.", object: withSignature(other, w.sshSign("git", unsigned)), keys: trusted})
	w.add(testCase{
		name: "pgp_of_another_commit", about: "A signature taken from another commit.", object: withSignature(other, once), keys: trusted,
	})
	w.certificate()
}

// revoked signs with subkeys and then revokes one primary key and one subkey. The reason is "superseded", because all
// signatures of a compromised key are invalid, including earlier signatures.
func (w *workshop) revoked() {
	const revokedAt, superseded = "20260501T000000", "2\n\ny\n"
	primary, subkey := w.commit("revoked"), w.commit("subrevoked")
	certificate := w.gpg(revokedAt, "y\n"+superseded, "--command-fd", "0", "--no-batch", "--gen-revoke", w.fingerprint("revoked"))
	w.gpg(revokedAt, certificate, "--import")
	w.export("revoked")
	w.gpg(revokedAt, "key 1\nrevkey\ny\n"+superseded+"save\n", "--command-fd", "0", "--no-batch", "--edit-key", address("subrevoked"))
	w.export("subrevoked")
	for name, object := range map[string][]byte{"revoked": primary, "subrevoked": subkey} {
		keys := []string{name + ".asc"}
		w.add(testCase{name: "pgp_" + name, about: "The key was revoked after it signed.", object: object, keys: keys})
		w.add(testCase{
			name: "pgp_" + name + "_later", about: "The revocation is dated in the future, and counts: the clock of who revokes may be fast, or ours slow.",
			object: object, keys: keys, now: "2026-04-01T00:00:00Z",
		})
	}
}

// sshSign signs directly with ssh-keygen, in a namespace.
func (w *workshop) sshSign(namespace string, content []byte) string {
	w.t.Helper()
	file := filepath.Join(w.gnupg, "content")
	_ = os.Remove(file + ".sig")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.run("", "ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", w.private("ed25519"), file)
	return w.read(file + ".sig")
}

// certificate creates a case in which the commit is signed with an SSH certificate.
func (w *workshop) certificate() {
	w.sshKey("certified", "-t", "ed25519")
	w.run("", "ssh-keygen", "-q", "-s", w.private("ed25519"), "-I", "x", "-n", address("certified"), "-V", "20260101:20300101", w.private("certified")+".pub")
	settings := append(w.as("certified"), "-c", "user.signingkey="+w.private("certified")+"-cert.pub")
	w.git(append(settings, "commit", "--quiet", "--allow-empty", "--message=x", "--gpg-sign")...)
	w.add(testCase{name: "ssh_certificate", about: "Certificates are not looked into.", object: w.raw("commit", "HEAD"), keys: []string{"certified.sshpub", "ed25519.sshpub"}})
}

func (w *workshop) merges() {
	start := w.git("rev-parse", "HEAD")
	w.commit("ed25519")
	w.git("checkout", "--quiet", "-b", "side", start)
	w.commit("ed25519")
	w.tag("pgp", "side-signed", "side")
	w.git("checkout", "--quiet", "main")
	w.git("merge", "--quiet", "--no-ff", "--message=Merge", "side")
	w.add(testCase{name: "merge_unsigned", about: "The merge of two signed commits, itself unsigned: what it makes of them, nobody vouches for.", object: w.raw("commit", "HEAD"), keys: []string{"ed25519.sshpub"}})
	w.git("reset", "--quiet", "--hard", "HEAD^")
	w.git(append(w.as("ed25519"), "merge", "--quiet", "--no-ff", "--message=Merge", "--gpg-sign", "side-signed")...)
	w.add(testCase{name: "merge_of_a_signed_tag", about: "A signed merge, with the signed tag that was merged among its headers.", object: w.raw("commit", "HEAD"), keys: []string{"ed25519.sshpub"}})
	w.git("reset", "--quiet", "--hard", "HEAD^")
	w.git("merge", "--quiet", "--no-ff", "--message=Merge", "side-signed")
	w.add(testCase{
		name: "merge_unsigned_of_a_signed_tag", about: "An unsigned merge, with the signed tag that was merged among its headers: that is no signature of the merge.",
		object: w.raw("commit", "HEAD"), keys: []string{"pgp.asc", "ed25519.sshpub"},
	})
}

func (w *workshop) tags() {
	trusted := []string{"pgp.asc", "ed25519.sshpub"}
	for signer, keys := range map[string][]string{"pgp": {"pgp.asc"}, "ed25519": {"ed25519.sshpub"}} {
		tag := w.tag(signer, "v1.0.0-"+signer, "HEAD")
		w.add(testCase{name: "tag_" + signer, about: "A signed tag.", object: tag, keys: keys, tag: "v1.0.0-" + signer})
		w.add(testCase{
			name: "tag_" + signer + "_renamed", about: "A signed tag, published under another name.", object: tag, keys: keys, tag: "v2.0.0",
		})
	}
	w.add(testCase{name: "tag_unsigned", about: "An annotated tag that nobody signed.", object: w.tag("", "v3", "HEAD"), keys: trusted, tag: "v3"})
	w.add(testCase{name: "tag_not_listed", about: "Signed by somebody else.", object: w.tag("stranger", "v4", "HEAD"), keys: trusted, tag: "v4"})
	w.add(testCase{name: "tag_of_a_tag", about: "Signed, and of a signed tag.", object: w.tag("pgp", "v5", "v1.0.0-pgp"), keys: trusted, tag: "v5"})
	w.add(testCase{name: "tag_of_a_tree", about: "Signed, and of no commit.", object: w.tag("pgp", "v6", "HEAD^{tree}"), keys: trusted, tag: "v6"})
}
