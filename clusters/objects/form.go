package objects

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v2"
)

// form is a configuration file of etcd without a member's own values. It is written once for all members, which takes a
// third of the time.
type form struct {
	options map[string]any
	// text is the file with nothing as the values of the own keys.
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

// encodeFile writes what sigs.k8s.io/yaml would write, without its detour by JSON.
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

// plainScalar are names and URLs that YAML writes as they are: they are longer than what it takes for a truth value.
var plainScalar = regexp.MustCompile(`^[a-z][-a-z0-9.:/=,]{5,}[a-z0-9]$`)

// filledIn is the file with these values of the own keys: what encodeFile writes.
func (f form) filledIn(own map[string]string) (string, error) {
	for _, value := range own {
		if !plainScalar.MatchString(value) {
			return encodeFile(f.options, own)
		}
	}
	var text strings.Builder
	for line := range strings.Lines(f.text) {
		key, _, _ := strings.Cut(line, ":") // what is not a key of the file itself is indented, or in a list
		if value, is := own[key]; is {
			line = key + ": " + value + "\n"
		}
		text.WriteString(line)
	}
	return text.String(), nil
}
