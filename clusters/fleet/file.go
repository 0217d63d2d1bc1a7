package fleet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"quorate.dev/quorate/clusters/fleetfile"
)

// ReadFile reads a fleet file and resolves its paths, which are relative to the file. An error lists all problems with
// their line numbers.
func ReadFile(name string) ([]fleetfile.Cluster, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, fleetfile.MostBytes+1))
	if err != nil {
		return nil, err
	}
	list, problems := fleetfile.Parse(text)
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s:%d: %s", name, p.Line, p.Message))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for i := range list {
		if p := &list[i].Kubeconfig; *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(name), *p)
		}
	}
	return list, nil
}
