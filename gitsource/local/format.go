package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/gcfg"
)

// maxConfigBytes is the maximum size of a repository's config.
const maxConfigBytes = 4 << 20

// harmless lists extensions that do not change how objects and references are read.
var harmless = []string{
	"noop", "noop-v1", "partialclone", "preciousobjects", "relativeworktrees", "worktreeconfig",
}

// format is the storage format specified in a repository's config, and its worktree. Git does not read the format from
// any other file.
type format struct {
	version    string
	worktree   string
	extensions map[string]string
}

// checkFormat returns an error if the repository is stored in a way that is not supported.
func (l Layout) checkFormat() error {
	f, err := readFormat(filepath.Join(l.Common, "config"))
	if err != nil {
		return err
	}
	if f.version != "0" && f.version != "1" {
		return fmt.Errorf("core.repositoryFormatVersion is %s: only 0 and 1 are supported", strconv.Quote(f.version))
	}
	if value := f.extensions["objectformat"]; value != "" && !strings.EqualFold(value, "sha1") {
		return fmt.Errorf("its object format is %s: only sha1 is supported", strconv.Quote(value))
	}
	if value := f.extensions["refstorage"]; value != "" && !strings.EqualFold(value, "files") {
		return fmt.Errorf("its references are stored as %s: only files are supported; "+
			"to convert them, run git refs migrate --ref-format=files", strconv.Quote(value))
	}
	if f.version == "0" {
		return nil // like git, ignore unknown extensions
	}
	var unknown []string
	for name := range f.extensions {
		if name != "objectformat" && name != "refstorage" && !slices.Contains(harmless, name) {
			unknown = append(unknown, strconv.Quote("extensions."+name))
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("%s in its config is not supported", unknown[0])
	}
	return nil
}

func readFormat(name string) (format, error) {
	f := format{version: "0", extensions: map[string]string{}}
	content, err := readFile(name, maxConfigBytes)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	content = strings.ToValidUTF8(strings.TrimPrefix(content, "\ufeff"), "?") // git reads names in any encoding
	err = gcfg.ReadWithCallback(strings.NewReader(content), func(section, sub, key, value string, _ bool) error {
		section, key = strings.ToLower(section), strings.ToLower(key)
		switch {
		case sub != "" || key == "":
		case section == "core" && key == "repositoryformatversion":
			f.version = value
		case section == "core" && key == "worktree":
			f.worktree = value
		case section == "extensions":
			f.extensions[key] = value
		}
		return nil
	})
	if err != nil {
		return f, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// unquoted returns the path in a line that git has quoted, as it does for paths with unusual bytes.
func unquoted(line string) (string, bool) {
	if !strings.HasPrefix(line, `"`) {
		return "", false
	}
	name, err := strconv.Unquote(line)
	return name, err == nil
}
