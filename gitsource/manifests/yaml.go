package manifests

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
)

// object is one declared object.
type object struct {
	// value is the object, decoded into JSON types, or nil if it is invalid.
	value map[string]any
	file  string
	line  int
	// node holds the positions of the fields in file. It is nil for a rendered object, because its fields can come from
	// several files.
	node *yaml.Node
	// problems lists the reasons why the object could not be decoded.
	problems []Problem
}

// parse returns the declarations in all documents of a YAML or JSON file. Documents after a syntax error are not read.
func (f *files) parse(file string, content []byte) (declarations []*declaration, problems []Problem) {
	if problems := textProblem(file, content); len(problems) > 0 {
		return nil, problems
	}
	for document, err := range f.documentsIn(content) {
		if err != nil {
			problems = append(problems, syntaxProblem(file, err))
			break
		}
		if root := rootOf(document); root != nil {
			d, p := f.declare(f.toObject(file, root))
			declarations, problems = append(declarations, d...), append(problems, p...)
		}
	}
	return declarations, problems
}

// documentsIn yields the documents of a file in order, up to the first error: a syntax error or an exceeded limit. Only
// one document is held in memory at a time.
func (f *files) documentsIn(content []byte) iter.Seq2[*yaml.Node, error] {
	return func(yield func(*yaml.Node, error) bool) {
		content, wrong := f.checkText(content)
		decoder := yaml.NewDecoder(bytes.NewReader(content))
		for {
			document, err := f.next(decoder)
			if errors.Is(err, io.EOF) && wrong != nil {
				err = wrong
			}
			if errors.Is(err, io.EOF) || !yield(document, err) || err != nil {
				return
			}
		}
	}
}

func (f *files) next(decoder *yaml.Decoder) (document *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: the parser panicked: %v", r)
		}
	}()
	if err := cmp.Or(f.ctx.Err(), f.exceeded); err != nil {
		return nil, err
	}
	document = &yaml.Node{}
	if err := decoder.Decode(document); err != nil {
		return nil, err
	}
	if f.documents++; f.documents > f.limits.Documents {
		return nil, f.exceed(settingObjects, "more than %d documents are read", f.limits.Documents)
	}
	return document, nil
}

// rootOf returns the document's root node, or nil.
func rootOf(document *yaml.Node) *yaml.Node {
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 || document.Content[0].ShortTag() == "!!null" {
		return nil
	}
	return document.Content[0]
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

func syntaxProblem(file string, err error) Problem {
	p := Problem{File: file, Message: err.Error()}
	var found *finding
	if errors.As(err, &found) {
		p.Line = found.line
		return p
	}
	if m := syntaxLine.FindStringSubmatch(p.Message); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Message = "is not valid YAML: " + m[2]
	}
	return p
}

func (f *files) toObject(file string, root *yaml.Node) object {
	o := object{file: file, line: root.Line, node: root}
	if o.problems = f.checkStructure(file, root); len(o.problems) > 0 {
		return o
	}
	decoded, err := valueOfNode(root)
	if _, ok := decoded.(map[string]any); err == nil && !ok {
		err = errors.New("is not an object: a document must have apiVersion and kind")
	}
	if err == nil {
		o.value, err = normalize(decoded)
	}
	if err != nil {
		o.problems = []Problem{{File: file, Line: root.Line, Message: strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	return o
}

// normalize converts an object to JSON types, as the API server's decoder does.
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
