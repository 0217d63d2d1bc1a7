package scenarios

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// setting returns the flag for a configuration file with one setting of quorate run, such as etcd.timeout.
func setting(name, value string) string {
	var content any = value
	for _, part := range slices.Backward(strings.Split(name, ".")) {
		content = map[string]any{part: content}
	}
	return configFlag(content.(map[string]any))
}

const configPrefix = "--config="

// withOneConfig replaces the configuration files in args with one file that contains all their settings. If a setting is
// in several files, the last file determines its value.
func withOneConfig(args []string) []string {
	merged, rest := map[string]any{}, []string(nil)
	for _, arg := range args {
		file, is := strings.CutPrefix(arg, configPrefix)
		if !is {
			rest = append(rest, arg)
			continue
		}
		content := map[string]any{}
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(text, &content)
		}
		if err != nil {
			panic(fmt.Sprintf("read the settings in %s: %v", file, err))
		}
		merge(merged, content)
	}
	if len(rest) == len(args) {
		return args
	}
	return append(rest[:1:1], append([]string{configFlag(merged)}, rest[1:]...)...)
}

func merge(to, from map[string]any) {
	for key, value := range from {
		inner, isGroup := value.(map[string]any)
		group, wasGroup := to[key].(map[string]any)
		if isGroup && wasGroup {
			merge(group, inner)
		} else {
			to[key] = value
		}
	}
}

// configFlag returns the flag for a configuration file with this content. The file is left in the directory for
// temporary files, where other tests can use it.
func configFlag(content map[string]any) string {
	content["apiVersion"], content["kind"] = "config.quorate.dev/v1alpha1", "Configuration"
	text, err := yaml.Marshal(content)
	file := filepath.Join(os.TempDir(), fmt.Sprintf("quorate-setting-%.8x.yaml", sha256.Sum256(text)))
	if err == nil {
		err = replaceFile(file, text)
	}
	if err != nil {
		panic(fmt.Sprintf("write the settings %v: %v", content, err))
	}
	return configPrefix + file
}

// replaceFile writes a file, and replaces an existing one atomically.
func replaceFile(file string, text []byte) error {
	unfinished, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file))
	if err != nil {
		return err
	}
	_, err = unfinished.Write(text)
	return errors.Join(err, unfinished.Close(), os.Rename(unfinished.Name(), file))
}
