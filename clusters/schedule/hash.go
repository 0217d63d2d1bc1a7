package schedule

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// spread is the word for a number that follows from the key.
const spread = "H"

// resolve replaces each H for the minute or the hour by its number. What has none stays as it is.
func resolve(expression, key string) (string, error) {
	fields := strings.Fields(expression)
	if len(fields) != 5 {
		return expression, nil // a word such as @daily, or what the library refuses
	}
	found := false
	for i, field := range fields {
		switch {
		case field == spread && i < 2:
			fields[i], found = numberOf(key, i), true
		case hasSpread(field):
			return "", fmt.Errorf("%q: %s stands for the minute or for the hour, and by itself alone, as in %q or %q",
				field, spread, "H * * * *", "H H * * *")
		}
	}
	if !found {
		return expression, nil
	}
	return strings.Join(fields, " "), nil
}

// hasSpread reports whether a field uses H for a number. The name of Thursday has one too.
func hasSpread(field string) bool {
	parts := strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(",-/", r) })
	for _, part := range parts {
		if strings.Contains(part, spread) && !strings.EqualFold(part, "thu") {
			return true
		}
	}
	return false
}

// numberOf is the number of a field. It must never change: a cluster would be backed up at another
// time, or twice.
func numberOf(key string, field int) string {
	names, sizes := [...]string{"minute", "hour"}, [...]uint64{60, 24}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key + "\x00" + names[field])) // a hash takes everything
	sum := h.Sum64()
	return strconv.FormatUint((sum^sum>>32)%sizes[field], 10)
}
