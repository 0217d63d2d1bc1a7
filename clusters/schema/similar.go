package schema

import (
	"maps"
	"slices"
	"strings"
)

// SimilarField returns the name of the field that was probably meant by the last part of an unknown field's path, or ""
// if there is no similar field.
func SimilarField(path string) string {
	c, err := load()
	if err != nil {
		return ""
	}
	if name, ok := strings.CutPrefix(path, "metadata."); ok {
		return nearest(name, []string{"annotations", "labels", "name", "namespace"})
	}
	parts := strings.Split(path, ".")
	s := *c.structural
	for _, part := range parts[:len(parts)-1] {
		name, _, isItem := strings.Cut(part, "[")
		s = s.Properties[name]
		if isItem && s.Items != nil {
			s = *s.Items
		}
	}
	return nearest(parts[len(parts)-1], slices.Sorted(maps.Keys(s.Properties)))
}

func nearest(name string, candidates []string) string {
	best, bestDistance := "", 3
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < bestDistance && d < len(candidate)/2 {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance returns the Levenshtein distance: the number of letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
