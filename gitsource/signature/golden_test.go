package signature

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var (
	rewrite = flag.Bool("rewrite", false, "write what is, instead of comparing it with what was wanted")
	remake  = flag.Bool("remake", false, "with -rewrite, make the signed objects again with git, gpg and ssh-keygen")
)

const archivesDir = "../../testdata/signature"

// TestGolden verifies each archive in testdata/signature except keys.txtar. An archive holds an object as git stores
// it. The last file, "want", contains the expected result. The comment of the archive describes the case. Its lines
// "keys: FILES", "now: TIME" and "tag: NAME" specify how the object is verified. The objects were created by
// TestRealToolsMatchGolden with the flags -remake and -rewrite.
func TestGolden(t *testing.T) {
	keys := readArchive(t, filepath.Join(archivesDir, "keys.txtar"))
	for name, archive := range readCases(t) {
		t.Run(name, func(t *testing.T) {
			got := outcome(t, keys, archive)
			if *rewrite {
				writeArchive(t, name, archive, got)
				return
			}
			if diff := cmp.Diff(fileIn(archive, "want"), got); diff != "" {
				t.Errorf("want -, got +; read the difference, and run with -rewrite if it is meant:\n%s", diff)
			}
		})
	}
}

// TestRealToolsMatchGolden checks that objects created now by the installed git, gpg and ssh-keygen give the same
// results as those in testdata/signature, and that git accepts everything that is accepted here.
func TestRealToolsMatchGolden(t *testing.T) {
	w := newWorkshop(t)
	w.makeCases()
	keys, cases := w.archives()
	if *remake && *rewrite {
		remakeArchives(t, keys, cases)
		return
	}
	recorded := readCases(t)
	oldKeys := readArchive(t, filepath.Join(archivesDir, "keys.txtar"))
	for name, archive := range cases {
		want, ok := recorded[name]
		if !ok {
			t.Errorf("%s is not in testdata/signature", name)
			continue
		}
		got := outcome(t, keys, archive)
		if diff := cmp.Diff(named(t, oldKeys, fileIn(want, "want")), named(t, keys, got)); diff != "" {
			t.Errorf("%s: recorded -, created now +:\n%s", name, diff)
		}
		w.compareWithGit(name, archive, got)
	}
	if len(cases) != len(recorded) {
		t.Errorf("%d cases are created, %d are recorded", len(cases), len(recorded))
	}
}

// compareWithGit checks only whether git agrees on results that depend on the bytes. Trusted signers and the validity
// periods of keys are configured differently in git.
func (w *workshop) compareWithGit(name string, archive *txtar.Archive, got string) {
	w.t.Helper()
	kind, _, _ := strings.Cut(name, "_")
	isSigned := strings.HasPrefix(got, "signer: ")
	if isSigned && !slices.Contains([]string{"commit", "tag", "merge"}, kind) || !isSigned && !strings.Contains(got, errTampered.Error()) {
		return
	}
	if w.gitAccepts(fileIn(archive, "object"), kind == "tag") != isSigned {
		w.t.Errorf("%s: %s, but git disagrees", name, strings.TrimSpace(got))
	}
}

// named replaces the fingerprints of keys with the names of their files, because recreated keys have different
// fingerprints.
func named(t *testing.T, keys *txtar.Archive, text string) string {
	t.Helper()
	for _, file := range keys.Files {
		for i, fingerprint := range fingerprintsIn(t, file) {
			text = strings.ReplaceAll(text, fingerprint, fmt.Sprintf("<%s %d>", strings.TrimSuffix(file.Name, filepath.Ext(file.Name)), i))
		}
	}
	return text
}

func fingerprintsIn(t *testing.T, file txtar.File) (all []string) {
	t.Helper()
	if slices.Contains([]string{"weak.asc", "encrypting.asc", "rsaweak.sshpub"}, file.Name) || filepath.Ext(file.Name) == ".allowed_signers" {
		return nil // these files are rejected, or list a key again
	}
	var keys Keys
	if err := keys.parse(file.Name, file.Data); err != nil {
		t.Fatalf("%s: %v", file.Name, err)
	}
	return strings.Split(keys.String(), ", ")
}

// outcome verifies the object of an archive and returns the result as text.
func outcome(t *testing.T, keys, archive *txtar.Archive) string {
	t.Helper()
	trusted, now, tag := settings(t, keys, archive)
	var signer Signer
	var err error
	if tag == "" {
		signer, err = trusted.Commit([]byte(fileIn(archive, "object")), now)
	} else {
		signer, err = trusted.Tag([]byte(fileIn(archive, "object")), tag, now)
	}
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	return "signer: " + signer.String() + "\n"
}

func settings(t *testing.T, keys, archive *txtar.Archive) (trusted Keys, now time.Time, tag string) {
	t.Helper()
	when := testNow
	for line := range strings.Lines(string(archive.Comment)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "keys":
			trusted = keysIn(t, keys, strings.Fields(value)...)
		case "now":
			when = value
		case "tag":
			tag = value
		}
	}
	now, err := time.Parse(time.RFC3339, when)
	if err != nil {
		t.Fatal(err)
	}
	return trusted, now, tag
}

// keysIn reads the named key files in an archive.
func keysIn(t testing.TB, archive *txtar.Archive, names ...string) (keys Keys) {
	t.Helper()
	for _, name := range names {
		if err := keys.parse(name, []byte(fileIn(archive, name))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return keys
}

func fileIn(archive *txtar.Archive, name string) string {
	for _, file := range archive.Files {
		if file.Name == name {
			return string(file.Data)
		}
	}
	return ""
}

func readArchive(t testing.TB, file string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func readCases(t testing.TB) map[string]*txtar.Archive {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(archivesDir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]*txtar.Archive{}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".txtar"); name != "keys" {
			cases[name] = readArchive(t, file)
		}
	}
	return cases
}

func writeArchive(t *testing.T, name string, archive *txtar.Archive, want string) {
	t.Helper()
	object := fileIn(archive, "object")
	archive.Files = []txtar.File{{Name: "object", Data: []byte(object)}, {Name: "want", Data: []byte(want)}}
	if err := os.WriteFile(filepath.Join(archivesDir, name+".txtar"), txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func remakeArchives(t *testing.T, keys *txtar.Archive, cases map[string]*txtar.Archive) {
	t.Helper()
	if err := os.MkdirAll(archivesDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(archivesDir, "keys.txtar"), txtar.Format(keys), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, archive := range cases {
		if object := fileIn(archive, "object"); !strings.HasSuffix(object, "\n") {
			t.Fatalf("%s does not end in a newline, which an archive would add", name)
		}
		writeArchive(t, name, archive, outcome(t, keys, archive))
	}
}
