package objects

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v2"
)

// form is an etcd configuration file without the values that differ between members. It is encoded once for all
// members, which is three times faster.
type form struct {
	options map[string]any
	// text is the encoded file with empty values for the own keys.
	text string
}

func formOf(options map[string]any) (form, error) {
	blank := map[string]string{}
	for _, key := range ownKeys {
		blank[key] = ""
	}
	text, err := encodeFile(options, blank)
	return form{options, text}, err
}

// encodeFile returns the same text as sigs.k8s.io/yaml, but does not encode to JSON first.
func encodeFile(options map[string]any, own map[string]string) (string, error) {
	keys := maps.Clone(options)
	for key, value := range own {
		keys[key] = value
	}
	text, err := yaml.Marshal(keys)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of etcd: %w", err)
	}
	return string(text), nil
}

// plainScalar matches names and URLs that YAML encoders do not quote. They are too long to be booleans.
var plainScalar = regexp.MustCompile(`^[a-z][-a-z0-9.:/=,]{5,}[a-z0-9]$`)

// filledIn returns the file with the given values for the own keys, exactly as encodeFile would return it.
func (f form) filledIn(own map[string]string) (string, error) {
	for _, value := range own {
		if !plainScalar.MatchString(value) {
			return encodeFile(f.options, own)
		}
	}
	var text strings.Builder
	for line := range strings.Lines(f.text) {
		key, _, _ := strings.Cut(line, ":") // other keys are indented or in a list
		if value, is := own[key]; is {
			line = key + ": " + value + "\n"
		}
		text.WriteString(line)
	}
	return text.String(), nil
}
