package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/visible"
)

// Comparison is what a report rests on where nothing was observed.
type Comparison struct {
	// Against is the revision that everything is taken to be as declared in.
	Against string `json:"against"`
	// Same is how many clusters both revisions declare alike. The report has none of them.
	Same int `json:"same"`
	// Unknown are the clusters, as namespace/name, of which it is not known what that revision declares.
	Unknown []string `json:"unknown,omitempty"`
	// Assumed is what is taken for granted besides, in words.
	Assumed string `json:"assumed"`
}

// AssumedWell is what a comparison takes for granted of each cluster, besides that it is as declared.
const AssumedWell = "all members are healthy, volumes are as large as declared, and runs have the flags for backups " +
	"that are declared; how much data there is, is not known"

// Change is a field that differs, or an object that does as a whole.
type Change struct {
	// Object that differs, by kind and name; empty for the declaration of the cluster.
	Object string `json:"object,omitempty"`
	// Field by its path, such as spec.replicas; empty where the object is told of as a whole.
	Field string `json:"field"`
	// From and To are its values; null where it has none.
	From any `json:"from"`
	To   any `json:"to"`
	// What becomes of the object as a whole; empty for a field.
	What What `json:"what,omitempty"`
}

// What becomes of an object.
type What string

// What may become of one.
const (
	// Made: it is not there.
	Made What = "made"
	// Deleted: it is not declared any more.
	Deleted What = "deleted"
	// Changed: what it holds is secret.
	Changed What = "changed"
)

// String says it on one line.
func (c Change) String() string {
	if c.What != "" {
		words := map[What]string{Changed: "changed, and values are not shown"}
		return fmt.Sprintf("%s: %s", c.Object, cmp.Or(words[c.What], string(c.What)))
	}
	from, to := c.From, c.To
	before, isText := from.(string)
	after, isTextToo := to.(string)
	if isText && isTextToo {
		from, to = apart(before, after)
	}
	return fmt.Sprintf("%s: %s -> %s", strings.TrimSpace(c.Object+" "+c.Field), shown(from), shown(to))
}

// apart leaves of two texts what tells them apart, where all of them would be too long: the lines that differ, and of
// long ones what follows their common beginning.
func apart(from, to string) (any, any) {
	before, after := strings.SplitAfter(from, "\n"), strings.SplitAfter(to, "\n")
	if len(before) > 1 || len(after) > 1 {
		for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
			before, after = before[1:], after[1:]
		}
		for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
			before, after = before[:len(before)-1], after[:len(after)-1]
		}
		from, to = strings.Join(before, ""), strings.Join(after, "")
		if a, b := strings.TrimRight(from, "\n"), strings.TrimRight(to, "\n"); a != b {
			from, to = a, b
		}
	}
	if len(from) > longestValue || len(to) > longestValue {
		from, to = withoutBeginning(from, to)
	}
	return someText(from, len(before)), someText(to, len(after))
}

// someText is a text, or none if there are no lines.
func someText(text string, lines int) any {
	if lines == 0 {
		return nil
	}
	return text
}

// withoutBeginning leaves out most of what two texts begin with.
func withoutBeginning(from, to string) (string, string) {
	const kept = 20
	same := 0
	for same < len(from) && same < len(to) && from[same] == to[same] {
		same++
	}
	if same <= longestValue/2 {
		return from, to
	}
	cut := func(text string) string { return "…" + strings.ToValidUTF8(text[same-kept:], "") }
	return cut(from), cut(to)
}

const (
	// longestValue is how many characters of a value are shown.
	longestValue = 200
	// mostChanges are told of one cluster.
	mostChanges = 50
)

// shown is a value on one line.
func shown(value any) string {
	if value == nil {
		return "none"
	}
	if text, is := value.(string); is && text != "" {
		return visible.Short(visible.Line(text), longestValue)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return "?"
	}
	return visible.Short(visible.Line(strings.TrimSpace(b.String())), longestValue)
}

// Changes are the fields in which two objects differ, as JSON has them, by their paths, those of the spec first: there
// may be any number of annotations, and people are told of the first ones. A list is one value.
func Changes(from, to any) []Change {
	var list []Change
	addChanges(&list, "", asJSON(from), asJSON(to))
	besideSpec := func(c Change) int {
		if strings.HasPrefix(c.Field, "spec.") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b Change) int { return besideSpec(a) - besideSpec(b) })
	return list
}

func asJSON(object any) (value any) {
	text, err := json.Marshal(object)
	if err != nil || json.Unmarshal(text, &value) != nil {
		return nil
	}
	return value
}

func addChanges(list *[]Change, path string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	before, wasMap := from.(map[string]any)
	after, isMap := to.(map[string]any)
	if !(wasMap || from == nil) || !(isMap || to == nil) || !wasMap && !isMap {
		*list = append(*list, Change{Field: path, From: from, To: to})
		return
	}
	fields := maps.Clone(before)
	if fields == nil {
		fields = map[string]any{}
	}
	maps.Copy(fields, after)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		step := name
		if path != "" {
			step = path + "." + name
		}
		addChanges(list, step, before[name], after[name])
	}
}

// Lines are the changes of a cluster for people, so many at most.
func (c Cluster) Lines() []string {
	var lines []string
	for i, change := range c.Changes {
		if i == mostChanges && i < len(c.Changes)-1 {
			return append(lines, "and "+decide.Count(len(c.Changes)-i, "other field"))
		}
		lines = append(lines, change.String())
	}
	return lines
}

// Sentence says what a comparison takes for granted.
func (c Comparison) Sentence() string {
	return "nothing was observed: clusters are taken to be as declared at " + c.Against + "; " + AssumedWell
}

// Counts says what is not told of cluster by cluster.
func (c Comparison) Counts() string {
	text := decide.Count(c.Same, "cluster") + " the same"
	if len(c.Unknown) > 0 {
		text += ", " + decide.Count(len(c.Unknown), "cluster") + " not compared"
	}
	return text
}
