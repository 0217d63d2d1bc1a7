package manifests

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// TestAnswersAreBounded checks that answers of an honest process within the limits are accepted, and that larger
// answers are rejected.
func TestAnswersAreBounded(t *testing.T) {
	const bytes = 1 << 10
	limits := Limits{FileBytes: bytes}
	files := func(n int) fstest.MapFS {
		m := fstest.MapFS{"a": {Data: make([]byte, n)}}
		for i := range n {
			m[fmt.Sprintf("dir/%0200d", i)] = &fstest.MapFile{Mode: fs.ModeDir}
		}
		return m
	}
	for _, q := range []Question{{List: "dir"}, {Read: "a"}, {Kind: "a"}, {Read: "missing"}, {List: strings.Repeat("x", 10*bytes)}} {
		line, err := json.Marshal(Answers(files(bytes), limits)(q))
		if err != nil {
			t.Fatal(err)
		}
		var a Answer
		if err := json.Unmarshal(line, &a); err != nil || a.Check(limits) != nil {
			t.Errorf("%v: %s: %v, %v", q, line, err, a.Check(limits))
		}
	}
	large := Answers(files(8*bytes), Limits{FileBytes: 2 << 20})
	for _, q := range []Question{{List: "dir"}, {Read: "a"}} {
		if a := large(q); a.Error != "" || a.Check(limits) == nil {
			t.Errorf("%v: it is accepted, or not reported (%s)", q, a.Error)
		}
		if a := Answers(files(8*bytes), limits)(q); !strings.Contains(a.Error, "; to allow more, raise limits.bytes") {
			t.Errorf("%v: error %s", q, a.Error)
		}
	}
	if (Answer{Error: strings.Repeat("x", 2<<10)}).Check(limits) == nil {
		t.Error("an immense error is accepted")
	}
}
