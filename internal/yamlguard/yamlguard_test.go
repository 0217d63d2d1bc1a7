package yamlguard

import "testing"

func TestRefuse(t *testing.T) {
	for text, refused := range map[string]bool{
		"":                          false,
		"a: b":                      false,
		"a: b*c":                    false,
		"a: '*b'":                   false,
		"a: |\n  *b\n":              false,
		"# *b\na: b":                false,
		"a: &b c":                   false,
		`{"a": "*b"}`:               false,
		"a: &b c\nd: *b":            true,
		"a: &b c\nd: [{e: [*b]}]":   true,
		"a: &b {c: d}\ne: {<<: *b}": true,
		"&b a: c\n*b : d":           true,
		"a: *b":                     true,
		"a: [*":                     true,
	} {
		if err := Refuse(text); (err != nil) != refused {
			t.Errorf("%q: %v", text, err)
		}
	}
}
