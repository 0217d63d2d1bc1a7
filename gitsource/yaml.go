package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
)

// object is one object as it is declared.
type object struct {
	// value is the object in the types of JSON.
	value map[string]any
	file  string
	line  int
	// node is where the fields stand in file; nil for a rendered object, whose fields can
	// come from several files.
	node *yaml.Node
}

// parse decodes all documents of a file, YAML or JSON.
func parse(file string, content []byte) (objects []object, problems []Problem) {
	documents, problems := documentsOf(file, content)
	for _, document := range documents {
		o, p := toObject(file, document)
		objects, problems = append(objects, o...), append(problems, p...)
	}
	return objects, problems
}

// documentsOf splits a file into its documents, and leaves out those that could not be
// worked with safely. What follows a syntax error is not read.
func documentsOf(file string, content []byte) (documents []*yaml.Node, problems []Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, problems
		}
		if err != nil {
			return documents, append(problems, syntaxProblem(file, err))
		}
		if p := checkStructure(file, &document); len(p) > 0 {
			problems = append(problems, p...)
			continue
		}
		documents = append(documents, &document)
	}
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

func syntaxProblem(file string, err error) Problem {
	p := Problem{File: file, Message: err.Error()}
	if m := syntaxLine.FindStringSubmatch(p.Message); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Message = "is not valid YAML: " + m[2]
	}
	return p
}

// toObject turns a document into an object; into none if it is empty.
func toObject(file string, document *yaml.Node) ([]object, []Problem) {
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 || document.Content[0].ShortTag() == "!!null" {
		return nil, nil
	}
	node := document.Content[0]
	var decoded any
	if err := node.Decode(&decoded); err != nil {
		return nil, []Problem{{File: file, Line: node.Line, Message: strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	if _, ok := decoded.(map[string]any); !ok {
		return nil, []Problem{{File: file, Line: node.Line, Message: "is no object: a document starts with apiVersion and kind"}}
	}
	value, err := normalize(decoded)
	if err != nil {
		return nil, []Problem{{File: file, Line: node.Line, Message: err.Error()}}
	}
	return []object{{value: value, file: file, line: node.Line, node: node}}, nil
}

// normalize gives an object the types of JSON, as the API server's decoder does.
func normalize(decoded any) (map[string]any, error) {
	encoded, err := json.Marshal(decoded)
	if err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	var value map[string]any
	if err := json.Unmarshal(encoded, &value); err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return value, nil
}
