package scenarios

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// setting returns the flag for a configuration file with one setting of quorate run, such as etcd.timeout. The flag may
// be repeated. The file is left in the directory for temporary files, where other tests can use it.
func setting(name, value string) string {
	text := &strings.Builder{}
	fmt.Fprint(text, "apiVersion: config.quorate.dev/v1alpha1\nkind: Configuration\n")
	parts := strings.Split(name, ".")
	for depth, part := range parts {
		fmt.Fprintf(text, "%s%s:", strings.Repeat("  ", depth), part)
		if depth < len(parts)-1 {
			fmt.Fprintln(text)
		}
	}
	fmt.Fprintf(text, " %q\n", value)
	file := filepath.Join(os.TempDir(), fmt.Sprintf("quorate-setting-%.8x.yaml", sha256.Sum256([]byte(text.String()))))
	unfinished, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file))
	if err == nil {
		_, err = unfinished.WriteString(text.String())
		err = errors.Join(err, unfinished.Close(), os.Rename(unfinished.Name(), file))
	}
	if err != nil {
		panic(fmt.Sprintf("write the setting %s: %v", name, err))
	}
	return "--config=" + file
}
