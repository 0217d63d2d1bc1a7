package schedule

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// spread is the placeholder for a number that is derived from the key.
const spread = "H"

// resolve replaces each H in the minute and hour fields with its number. Expressions without H are unchanged.
func resolve(expression, key string) (string, error) {
	fields := strings.Fields(expression)
	if len(fields) != 5 {
		return expression, nil // a word such as @daily, or an expression that the library rejects
	}
	found := false
	for i, field := range fields {
		switch {
		case field == spread && i < 2:
			fields[i], found = numberOf(key, i), true
		case hasSpread(field):
			return "", fmt.Errorf("%q: %s may only replace the whole minute or the whole hour, as in %q or %q",
				field, spread, "H * * * *", "H H * * *")
		}
	}
	if !found {
		return expression, nil
	}
	return strings.Join(fields, " "), nil
}

// hasSpread reports whether a field contains H as a placeholder. THU contains an H too.
func hasSpread(field string) bool {
	parts := strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(",-/", r) })
	for _, part := range parts {
		if strings.Contains(part, spread) && !strings.EqualFold(part, "thu") {
			return true
		}
	}
	return false
}

// numberOf returns the number for a field. It must never change. Otherwise, a cluster would be backed up at a different
// time, or twice.
func numberOf(key string, field int) string {
	names, sizes := [...]string{"minute", "hour"}, [...]uint64{60, 24}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key + "\x00" + names[field])) // never fails
	sum := h.Sum64()
	return strconv.FormatUint((sum^sum>>32)%sizes[field], 10)
}
