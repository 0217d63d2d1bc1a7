package manifests

// withoutNulls drops fields that are null, in place: in server-side apply they would mean
// something else than leaving them out.
func withoutNulls(value map[string]any) map[string]any {
	for key, v := range value {
		switch v := v.(type) {
		case nil:
			delete(value, key)
		case map[string]any:
			withoutNulls(v)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					withoutNulls(m)
				}
			}
		}
	}
	return value
}
