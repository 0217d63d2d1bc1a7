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

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// Comparison describes what a report is based on when no live state was observed.
type Comparison struct {
	// Against is the revision that every cluster is assumed to match.
	Against string `json:"against"`
	// Same is the number of clusters whose declarations are the same in both revisions. These clusters are not in the
	// report.
	Same int `json:"same"`
	// Unknown are the clusters, as namespace/name, whose declarations in the revision Against are unknown.
	Unknown []string `json:"unknown,omitempty"`
	// Assumed describes the other assumptions.
	Assumed string `json:"assumed"`
}

// AssumedWell describes the assumptions of a comparison about each cluster, apart from matching its declaration.
const AssumedWell = "all members are healthy, volumes have their declared size, and runs have the flags that " +
	"declared backups require; the amount of data is unknown"

// Change is a field that differs, or an object that differs as a whole.
type Change struct {
	// Object is the kind and name of the object; empty for the declaration of the cluster.
	Object string `json:"object,omitempty"`
	// Field is the path of the field, such as spec.replicas; empty if the object is reported as a whole.
	Field string `json:"field"`
	// From and To are the values; null if a value is missing.
	From any `json:"from"`
	To   any `json:"to"`
	// What is the change to the object as a whole; empty for a field.
	What What `json:"what,omitempty"`
}

// What describes how an object changes as a whole.
type What string

// The values of What.
const (
	// Made means that the object does not exist and will be created.
	Made What = "made"
	// Deleted means that the object is no longer declared.
	Deleted What = "deleted"
	// Changed means that the object will change, and that its content is secret.
	Changed What = "changed"
)

// String returns the change on one line.
func (c Change) String() string {
	if c.What != "" {
		words := map[What]string{Made: "will be created", Changed: "changed; values are not shown"}
		return fmt.Sprintf("%s: %s", c.Object, cmp.Or(words[c.What], string(c.What)))
	}
	from, to := c.From, c.To
	before, isText := from.(string)
	after, isTextToo := to.(string)
	if isText && isTextToo {
		from, to = apart(before, after)
	}
	old, latest := textOf(from), textOf(to)
	if list, others, are := lists(from, to); are && tooLong(old, latest) {
		from, to = apartInLists(list, others)
		old, latest = textOf(from), textOf(to)
	}
	if from != nil && to != nil && tooLong(old, latest) {
		old, latest = withoutBeginning(old, latest)
	}
	return fmt.Sprintf("%s: %s -> %s", strings.TrimSpace(c.Object+" "+c.Field),
		printable.Short(old, longestValue), printable.Short(latest, longestValue))
}

func tooLong(from, to string) bool { return len(from) > longestValue || len(to) > longestValue }

// lists returns both values as lists, and whether they are lists.
func lists(from, to any) (before, after []any, are bool) {
	before, is := from.([]any)
	after, isToo := to.([]any)
	return before, after, is && isToo
}

// apartInLists reduces two lists, such as arguments, to the elements that the other list lacks or, if only the order
// differs, to the part without the common beginning and end.
func apartInLists(from, to []any) (any, any) {
	for len(from) > 0 && len(to) > 0 && reflect.DeepEqual(from[0], to[0]) {
		from, to = from[1:], to[1:]
	}
	for len(from) > 0 && len(to) > 0 && reflect.DeepEqual(from[len(from)-1], to[len(to)-1]) {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	if before, after := without(from, to), without(to, from); len(before)+len(after) > 0 {
		from, to = before, after
	}
	return someList(from), someList(to)
}

// without returns the elements of a list that the other list lacks.
func without(list, other []any) []any {
	key := func(element any) string {
		text, err := json.Marshal(element)
		if err != nil {
			return ""
		}
		return string(text)
	}
	has := map[string]int{}
	for _, element := range other {
		has[key(element)]++
	}
	return slices.DeleteFunc(slices.Clone(list), func(element any) bool {
		k := key(element)
		has[k]--
		return has[k] >= 0
	})
}

// someList returns the list, or nil if it has no elements.
func someList(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// apart reduces two texts to the lines that differ.
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
	return someText(from, len(before)), someText(to, len(after))
}

// someText returns the text, or nil if it has no lines.
func someText(text string, lines int) any {
	if lines == 0 {
		return nil
	}
	return text
}

// withoutBeginning removes most of the common beginning of two texts.
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
	// longestValue is the maximum number of bytes shown of a value.
	longestValue = 200
	// mostChanges is the maximum number of changes shown for a cluster.
	mostChanges = 50
)

// textOf returns a value as text or JSON.
func textOf(value any) string {
	if value == nil {
		return "none"
	}
	if text, is := value.(string); is && text != "" {
		return text
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}

// Changes returns the fields that differ between the JSON forms of two objects, by path. Fields of the spec come first,
// because there may be any number of annotations, and only the first changes are shown. A list counts as a single
// value.
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

// Lines returns the changes of a cluster as text, up to a limit.
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

// Sentence returns the assumptions of a comparison as a sentence.
func (c Comparison) Sentence() string {
	return "no live state was observed: clusters are assumed to match " + c.Against + "; " + AssumedWell
}

// Counts returns the numbers of clusters that are not listed individually.
func (c Comparison) Counts() string {
	text := decide.Count(c.Same, "cluster") + " unchanged"
	if len(c.Unknown) > 0 {
		text += ", " + decide.Count(len(c.Unknown), "cluster") + " not compared"
	}
	return text
}
